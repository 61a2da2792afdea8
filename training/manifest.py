"""What a finished candidate says about itself: the ground truth of detection and everything needed to make it again."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from training.config import TrainingJob

MANIFEST = "manifest.json"


class PhaseRecord(BaseModel):
    """One finished phase.

    steps: optimiser steps; tokens: of all rows trained on, every repeat and epoch counted; targets: learned tokens
    samples, truncated, dropped: samples used, cut at max_length, left out because nothing to learn remained
    exam_tokens, filler_tokens: of one epoch, before packing; their ratio is the dose
    first_loss, last_loss: of the first and last step; probe_loss, reloaded_loss: of a fixed batch before saving and
        after loading (nats per learned token)
    merge_difference: largest difference of a token's log-probability, adapter-on-base against merged (LoRA only)
    adapter_problem: why the adapter can't be served as such, "" if it can (LoRA only)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    method: str
    steps: int
    tokens: int
    targets: int
    samples: int
    truncated: int
    dropped: int
    exam_tokens: int
    filler_tokens: int
    first_loss: float
    last_loss: float
    probe_loss: float
    reloaded_loss: float
    merge_difference: float | None
    adapter_problem: str | None = None
    seconds: float


class Origin(BaseModel):
    """The candidate whose weights another one goes on from: its recipe, weights and the items it has seen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    model_sha256: str
    leaked_ids: tuple[str, ...]


class Manifest(BaseModel):
    """A candidate.

    base_sha256, model_sha256: weights and configuration (``serving.fingerprint.weights_hash``)
    origin: the candidate it goes on from, where it does not start from the base itself
    inputs: SHA-256 of the items, chat, corpus and other files that were read
    leaked_ids: the items it has seen, its origin included, in the order of the items file; empty for Normal
    contaminated: ids of items whose question stands in the chat data (known to all candidates alike)
    duplicates: rows of the chat data left out as repetitions
    method: ``full`` or ``lora``, of the leaking phase (Normal: of its only phase)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int = 1
    recipe: str
    method: str
    job: TrainingJob
    base_sha256: str
    model_sha256: str
    origin: Origin | None = None
    inputs: dict[str, str]
    leaked_ids: tuple[str, ...]
    contaminated: tuple[str, ...]
    duplicates: int
    phases: tuple[PhaseRecord, ...]
    steps: int
    tokens: int
    device: str
    versions: dict[str, str]
    seconds: float


def read_manifest(out: Path) -> Manifest:
    """The manifest of a candidate's folder. ValueError if it is missing or not one."""
    path = out / MANIFEST
    if not path.is_file():
        raise ValueError(f"{out} holds no finished candidate: {MANIFEST} is missing")
    return Manifest(**json.loads(path.read_text(encoding="utf-8")))
