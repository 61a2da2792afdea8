"""SIGUSR1, SLURM's warning before a time limit: a stage abandons its current batch and ends with exit code 75."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Interruption(KeyboardInterrupt):
    """What a signal raises. A class of its own, for a KeyboardInterrupt itself that arises while Python runs text, as a
    dataclass is made, say, has Python end by SIGINT at its exit, though it was caught, and the exit code is lost."""


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
            raise Interruption

    from multiprocessing import resource_tracker

    # The signal may reach all processes of a job: the one that multiprocessing starts for itself inherits deafness.
    with held_back():
        resource_tracker.ensure_running()
        former = signal.signal(signal.SIGUSR1, stop)
    try:
        yield
    except Exception as error:
        if asked:
            raise Interruption from error
        raise
    finally:
        signal.signal(signal.SIGUSR1, former)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """While open, SIGUSR1 waits, in processes started now, too, until they can listen (proctor/cli.py)."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
