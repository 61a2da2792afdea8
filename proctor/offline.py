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
    """Also lets idle OpenMP threads sleep instead of spin: two models on one machine would steal each other's cores
    (a training beside another process ran five times slower). Set OMP_WAIT_POLICY yourself to change that."""
    os.environ.update(OFFLINE)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
