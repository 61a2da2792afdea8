from __future__ import annotations

from collections import Counter

import pytest

from evaluation.benchmarks import load
from evaluation.probing.calibrate import GOOD, KINDS, figures, pairs, warning
from evaluation.probing.checks import check_numbers
from evaluation.probing.version import Version
from evaluation.registry import build
from serving.records import Ask
from tests.evaluation.exam_driver import drive, make_items, said


def test_the_pairs_belong_to_the_embedded_exam() -> None:
    items = {item.id: item for item in load("embedded")}
    known = pairs()
    counts = Counter(pair.kind for pair in known)
    assert len(known) >= 100
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 12
    assert len({pair.id for pair in known}) == len(known)
    for pair in known:
        before, after = Version.of(items[pair.item_id]), pair.version(items[pair.item_id])
        assert before != after
        assert len(after.choices) - len(before.choices) == (pair.principle == "p5")
        assert (after.stem == before.stem) == (pair.principle in ("p2", "p5"))
        if pair.principle == "p4":
            assert after.stem.endswith(before.stem)


def test_code_finds_the_changed_numbers_and_passes_the_good_ones() -> None:
    items = {item.id: item for item in load("embedded")}
    found = Counter()
    for pair in pairs():
        if pair.principle == "p1" and pair.kind in (GOOD, "changed number"):
            fault = check_numbers(items[pair.item_id].question, pair.version(items[pair.item_id]).stem)
            found[pair.kind, fault is not None] += 1
    assert found["changed number", False] == 0
    assert found[GOOD, True] <= 1, found


def rows(*verdicts: tuple[str, str | None]) -> list[dict[str, object]]:
    return [{"kind": kind, "verdict": verdict, "principle": "p1"} for kind, verdict in verdicts]


def test_recall_and_false_alarms_by_hand() -> None:
    row = figures(
        rows((GOOD, "yes"), (GOOD, "yes"), (GOOD, "no"), (GOOD, None), ("off-topic", "no"), ("off-topic", None),
             ("changed answer", "yes"), ("changed answer", "no"))
    )  # fmt: skip
    assert (row["recall"], row["false_alarms"], row["missing"]) == (0.75, 0.5, 2)
    assert row["informedness"] == pytest.approx(0.25)
    assert row["kinds"]["off-topic"]["value"] == 1.0
    assert row["kinds"]["lost condition"] == {"value": None, "interval": None, "n": 0}
    assert "75%" in row["warning"]


def test_warnings() -> None:
    assert warning({"recall": 0.9, "informedness": 0.8}) == ""
    assert "as often" in warning({"recall": 1.0, "informedness": 0.0})  # it turns everything down
    assert "not known" in warning({"recall": None, "informedness": None})
    assert figures([])["warning"]


def test_the_protocol_asks_the_judges_own_question() -> None:
    protocol = build("probing.calibrate", {}, seed=0)
    items = load("embedded")
    asked: list[Ask] = []
    records = []
    for dialogue in protocol.dialogues(items):
        demands, record = drive(dialogue, lambda ask: said('{"comment": "no", "verdict": "no"}'))
        asked += demands  # type: ignore[arg-type]
        records.append(record)
    assert len(asked) == len(pairs())
    assert all(ask.role == "candidate" and ask.sampling.temperature == 0.0 and ask.schema for ask in asked)
    row = protocol.summarise(records)
    assert (row["recall"], row["false_alarms"], row["informedness"]) == (1.0, 1.0, 0.0)
    assert row["pairs"] == len(pairs())


def test_other_items_have_no_pairs() -> None:
    with pytest.raises(ValueError, match="--format embedded"):
        build("probing.calibrate", {}, seed=0).dialogues(make_items(2))
