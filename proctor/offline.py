"""Nothing leaves the machine: set before anything else is imported, inherited by every child process."""

from __future__ import annotations

import os

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "DO_NOT_TRACK": "1",
    "WANDB_MODE": "offline",
    "PYTHONSAFEPATH": "1",
}


def go_offline() -> None:
    os.environ.update(OFFLINE)
