"""Being asked to stop: SIGTERM and SIGUSR1 (SLURM's warning) lead to a checkpoint and exit code 75.

A signal may reach the process that asked for the training, torchrun's agent, or the workers. All of them say so in one
place, a file in the phase's folder, and the workers look for it after every optimiser step.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

EXIT_CODE = 75
STOP_FILE = "STOP"
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Interrupted(SystemExit):
    """Training was asked to stop and has written a checkpoint: run the same again to go on. Uncaught, it exits 75."""

    def __init__(self, message: str) -> None:
        super().__init__(EXIT_CODE)
        self.message = message

    def __str__(self) -> str:
        return self.message


@contextmanager
def stop_on_signal(folder: Path) -> Iterator[None]:
    """While open, SIGTERM and SIGUSR1 only leave the stop file in ``folder``. No effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave_note(number: int, frame: FrameType | None) -> None:
        (folder / STOP_FILE).touch()

    former = {number: signal.signal(number, leave_note) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def stop_wanted(folder: Path) -> bool:
    return (folder / STOP_FILE).exists()


def forget_stop(folder: Path) -> None:
    """A run begins: an earlier wish to stop has been fulfilled."""
    (folder / STOP_FILE).unlink(missing_ok=True)
