"""What ``Server`` starts: vLLM's command line, in a session of its own that ends with its parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time


def end_with(parent: int) -> None:
    """Kills this process group, the engine's process included, once the parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


if __name__ == "__main__":
    end_with(int(os.environ.pop("PROCTOR_PARENT")))
    from vllm.entrypoints.cli.main import main

    sys.argv[0] = "vllm"
    main()
