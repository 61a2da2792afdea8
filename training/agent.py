"""torchrun's agent, made to die with whoever started it: ``python -m training.agent [torchrun arguments] FOLDER``.

The kernel kills this process when its parent dies (PR_SET_PDEATHSIG), and the workers watch this process, so that
nothing goes on training unseen after a kill -9. SIGTERM and SIGUSR1 are not passed to torchrun, which would give its
workers 30 s: they leave the stop file in FOLDER, and the workers write their checkpoint in their own time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from training.interrupt import stop_on_signal

PR_SET_PDEATHSIG = 1
PARENT_VARIABLE = "PROCTOR_PARENT"
AGENT_VARIABLE = "PROCTOR_AGENT"


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when its parent ends (Linux); at once if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(arguments: list[str]) -> None:
    die_with_parent(int(os.environ[PARENT_VARIABLE]))
    os.environ[AGENT_VARIABLE] = str(os.getpid())
    with stop_on_signal(Path(arguments[-1])):
        from torch.distributed import run

        if "--signals-to-handle" in run.get_args_parser().format_help():
            arguments = ["--signals-to-handle", "SIGINT,SIGHUP,SIGQUIT", *arguments]
        run.main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
