"""The detectors that ask for more than a text's own table, on a random model of two layers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from detection.audit import audit_dialogue
from detection.detectors import build
from detection.method import Context, Text, mean
from serving.engines.transformers_engine import TransformersBackend
from serving.model.spec import ModelSpec
from tests.serving.serving_models import llama2, save_model

METHODS = ("lowercase", "reference", "neighbour", "recall", "con_recall", "dc_pdd", "pac")
TEXTS = (
    Text(id="a", text="Question: Which planet is red?\nAnswer: It is Mars.", prompt="Question: Which planet is red?\n"),
    Text(id="b", text="The quick brown fox jumps over the lazy dog. Hello there, how are you?"),
    Text(id="c", text="Hello"),
    Text(id="d", text=""),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("models")
    return {
        "candidate": save_model(base / "candidate", max_position_embeddings=1024),
        "reference": save_model(base / "reference", llama2(), seed=1),
    }


@pytest.fixture(scope="module")
def roles(folders: dict[str, Path]) -> dict[str, TransformersBackend]:
    return {
        role: TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32"))
        for role, folder in folders.items()
    }


@pytest.fixture
def context(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    (tmp_path / "corpus.txt").write_text("The quick brown fox is red. It is Mars.\n" * 5)
    return Context(
        non_members=tuple(f"What is {i} + 2? It is {i + 2}." for i in range(14)),
        members=tuple(f"Hello {i}, how are you?" for i in range(14)),
        corpus=tmp_path / "corpus.txt",
        reference=True,
        model=ModelSpec(path=str(folders["candidate"]), engine="transformers"),
    )


def answers(wanted: list[Any], roles: dict[str, TransformersBackend]) -> list[Any]:
    """One batch for each role."""
    found: dict[int, Any] = {}
    for role, backend in roles.items():
        at = [i for i, demand in enumerate(wanted) if demand.role == role]
        found.update(zip(at, backend.score([wanted[i].request() for i in at]), strict=True))
    return [found[i] for i in range(len(wanted))]


def audit(texts: list[Text], context: Context, roles: dict[str, TransformersBackend]) -> dict[Any, dict[str, Any]]:
    """Scores by id; what all texts ask next is one batch, as under the scheduler."""
    running = [audit_dialogue(text, build(METHODS, context)) for text in texts]
    wanted = [next(dialogue) for dialogue in running]
    records: dict[int, Any] = {}
    while len(records) < len(texts):
        open_ones = [i for i in range(len(texts)) if i not in records]
        replies = iter(answers([demand for i in open_ones for demand in wanted[i]], roles))
        for i in open_ones:
            try:
                wanted[i] = running[i].send([next(replies) for _ in wanted[i]])
            except StopIteration as done:
                records[i] = done.value
    return {record["id"]: record["scores"] for record in records.values()}


def test_every_score_is_finite_and_depends_on_its_text_alone(context, roles) -> None:
    together = audit(list(TEXTS), context, roles)
    assert list(together["a"]) == [name + part for name in METHODS for part in ("", "/prompt", "/answer")]
    assert all(value is not None for value in together["a"].values())
    assert all(value is not None for value in together["b"].values())
    assert {name for name, value in together["c"].items() if value is None} == {"neighbour", "pac"}  # one word
    assert set(together["d"].values()) == {None}
    backward = audit(list(TEXTS)[::-1], context, roles)
    for text in TEXTS:
        alone = audit([text], context, roles)[text.id]
        for name, value in together[text.id].items():
            for other in (backward[text.id][name], alone[name]):
                assert (other is None) == (value is None)
                assert value is None or other == pytest.approx(value, abs=1e-4), name


def test_the_reference_model_reads_with_its_own_tokenizer(context, roles) -> None:
    text = TEXTS[0]
    (detector,) = build(["reference"], context)
    dialogue = detector.examine(text)
    own, other = answers(next(dialogue), roles)
    assert own.ids != other.ids
    assert len(own.ids) != len(other.ids)
    reference = roles["reference"].tokenizer
    assert list(other.ids) == reference(text.text)["input_ids"][1:]  # after its BOS
    with pytest.raises(StopIteration) as done:
        dialogue.send([own, other])
    expected = (sum(own.logprobs) - sum(other.logprobs)) / len(own.logprobs)
    assert done.value.value["reference"] == pytest.approx(expected)


def test_a_prefix_is_computed_once_and_segments_cost_nothing(context, roles) -> None:
    (detector,) = build(["recall"], context)
    asked = []
    for i in range(8):
        text = Text(id=i, text=f"Which planet is number {i}? It is Mars.", prompt=f"Which planet is number {i}?")
        dialogue = detector.examine(text)
        plain = next(dialogue)
        asked.append(dialogue.send(*answers([plain], roles)))
    tables = answers([demand for wanted in asked for demand in wanted], roles)
    prefix = len(roles["candidate"].tokenizer(asked[0][0].prompt)["input_ids"])
    assert sum(table.computed_tokens for table in tables) < prefix + 8 * 40
    assert sum(table.asked_tokens for table in tables) > 16 * prefix
    for whole, answer in zip(tables[::2], tables[1::2], strict=True):
        assert answer.computed_tokens == 0
        assert whole.logprobs[-len(answer.logprobs) :] == answer.logprobs
        assert not whole.dropped


def test_a_prefix_longer_than_the_context_leaves_the_text_whole(folders, roles, context, drive) -> None:
    spec = ModelSpec(path=str(folders["candidate"]), engine="transformers", dtype="float32", max_length=160)
    short = TransformersBackend(spec)
    tables = []

    def answer(demand: Any) -> Any:
        tables.extend(short.score([demand.request()]))
        return tables[-1]

    (detector,) = build(["recall"], context)
    scores, _ = drive(detector.examine(TEXTS[1]), answer)
    plain, *tried = tables
    assert [bool(table.dropped) for table in tried] == [True] * (len(tried) - 1) + [False]
    assert 1 < len(tried) < 5
    assert len(tried[-1].ids) >= len(plain.ids)
    assert scores == {"recall": pytest.approx(mean(tried[-1].logprobs) / mean(plain.logprobs))}
    assert math.isfinite(scores["recall"])
