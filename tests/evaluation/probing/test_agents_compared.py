from __future__ import annotations

from typing import Any

import pytest

from evaluation.probing.agents_compared import compare_agents


def record(item: str, results: list[str], status: str) -> dict[str, Any]:
    attempts = [{"text": "", "result": result, "reason": ""} for result in results]
    return {"item_id": item, "set": 1, "question": {"p1": {"status": status, "attempts": attempts}}, "choices": {}}


def test_fallbacks_attempts_and_defects_by_hand() -> None:
    weak = [
        record("x", ["code: empty", "judge"], "fallback"),
        record("y", ["judge", "accepted"], "accepted"),
        record("z", [], "not_applicable"),
    ]
    strong = [record("x", ["accepted"], "accepted"), record("y", ["accepted"], "accepted")]
    row = compare_agents(weak, strong, seed=0)
    stage = row["stages"]["p1"]
    assert (row["pairs"], stage["n"]) == (2, 2)
    assert (stage["fallback_rate"]["a"], stage["fallback_rate"]["b"], stage["fallback_rate"]["difference"]) == (
        0.5,
        0,
        0.5,
    )
    assert stage["attempts"]["difference"] == 1.0
    assert stage["turned_down_by_code"]["a"] == 0.25
    assert stage["turned_down_by_judge"]["a"] == 0.5
    with pytest.raises(ValueError, match="no \\(item, set\\) in common"):
        compare_agents(weak, [], seed=0)
