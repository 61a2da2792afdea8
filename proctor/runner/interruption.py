"""SIGUSR1, SLURM's warning before a time limit: a stage abandons its current batch and ends with exit code 75."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from types import FrameType


@contextlib.contextmanager
def stop_on_usr1() -> Iterator[None]:
    """While open, SIGUSR1 interrupts the main thread as Ctrl-C does, and whatever fails after it (an engine that got
    the same signal and died, say) counts as the interruption, too. Training puts its own handler over it, which writes
    a checkpoint first."""
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:  # a second signal must not disturb the closing
            asked = True
            raise KeyboardInterrupt

    # The signal may reach all processes of a job: the one that multiprocessing starts for itself inherits deafness.
    former = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    resource_tracker.ensure_running()
    signal.signal(signal.SIGUSR1, stop)
    try:
        yield
    except Exception as error:
        if asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGUSR1, former)
