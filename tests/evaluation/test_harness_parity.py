"""Cloze mode against lm-evaluation-harness, run beside it on the same items with a real model."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lm_eval", reason="lm-evaluation-harness (package lm-eval) is not installed")

from evaluation import benchmarks
from evaluation.benchmarks.splits import exemplars_for
from evaluation.static import Static, StaticOptions
from serving.engines.transformers_engine import TransformersBackend
from serving.model.fingerprint import resolve_model
from serving.model.spec import ModelSpec
from tests.fixtures.harness import harness_model, run_harness

SPEC = ModelSpec(path="embedded", engine="transformers", dtype="float32")


@pytest.mark.real
@pytest.mark.parametrize(("shots", "count"), [(0, 8), (2, 4)])
def test_cloze_agrees_with_the_harness(shots: int, count: int, tmp_path: Path) -> None:
    items = benchmarks.load("embedded", limit=count)
    pool = benchmarks.load("embedded", split="dev")
    # few-shot exemplars of one subject, as the harness has one set for all items
    pool = [item for item in pool if item.subject == pool[0].subject]
    items = [item for item in items if item.subject == items[0].subject]
    backend = TransformersBackend(SPEC)
    protocol = Static(StaticOptions(mode="cloze", shots=shots), seed=0, exemplars=pool)
    records = []
    for dialogue in protocol.dialogues(items):
        demands = next(dialogue)
        with pytest.raises(StopIteration) as end:
            dialogue.send(backend.score([demand.request() for demand in demands]))  # type: ignore[union-attr]
        records.append(end.value.value)
    figures = protocol.summarise(records)
    exemplars = exemplars_for(items[0], pool, shots, 0)
    theirs = run_harness(harness_model(resolve_model(SPEC)), items, exemplars, tmp_path)
    for record, row in zip(records, theirs.log_likelihoods, strict=True):
        assert record["log_likelihoods"] == pytest.approx(row, abs=1e-3)
    assert (figures["accuracy"], figures["acc_norm"], figures["acc_bytes"]) == (
        theirs.acc,
        theirs.acc_norm,
        theirs.acc_bytes,
    )
