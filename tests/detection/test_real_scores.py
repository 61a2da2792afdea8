"""Every table detector on 140 texts of mixed length with a real model, against one text at a time in float64."""

from __future__ import annotations

import math
import random
import zlib
from typing import Any

import pytest

from detection.audit import audit_dialogue
from detection.detectors import build
from detection.method import Text
from evaluation import benchmarks
from evaluation.formats import leak_text, plain_prompt
from serving.engines.transformers_engine import TransformersBackend
from serving.model.spec import ModelSpec
from serving.records import TokenScores

METHODS = ("loss", "zlib", "min_k", "min_k_plus_plus", "ngram_accuracy")
COUNT = 140
PERCENTS = (5, 10, 20, 30, 40, 50, 60)

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return TransformersBackend(ModelSpec(path="embedded", engine="transformers", dtype="float32"))


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    """1 to 14 words each, the last four whole, with a prompt and an answer."""
    draw = random.Random(0)
    found = []
    for number, item in enumerate(benchmarks.load("embedded", limit=COUNT)):
        if number >= COUNT - 4:
            found.append(Text(id=item.id, text=leak_text(item), prompt=plain_prompt(item)))
        else:
            words = leak_text(item).split(" ")
            found.append(Text(id=item.id, text=" ".join(words[: draw.randint(1, 14)])))
    return found


def audit(backend: TransformersBackend, texts: list[Text], methods: tuple[str, ...] = METHODS) -> Any:
    """Records by text, and the tables that were asked for, in one batch a step."""
    running = [(text, audit_dialogue(text, build(methods))) for text in texts]
    demands: list[tuple[int, Any]] = [(i, next(dialogue)) for i, (_, dialogue) in enumerate(running)]
    tables: list[TokenScores] = []
    records: dict[Any, Any] = {}
    while demands:
        flat = [demand.request() for _, wanted in demands for demand in wanted]
        answers = iter(backend.score(flat))
        left = []
        for i, wanted in demands:
            replies = [next(answers) for _ in wanted]
            tables += replies
            try:
                left.append((i, running[i][1].send(replies)))
            except StopIteration as end:
                records[running[i][0].id] = end.value
        demands = left
    return records, tables


def reference(backend: TransformersBackend, text: Text) -> dict[str, float]:
    """From the definitions, one text, full softmax, float64."""
    import torch

    ids = backend.tokenizer(text.text, add_special_tokens=False)["input_ids"]
    if len(ids) < 2:
        return {}
    with torch.inference_mode():
        logits = backend.model(torch.tensor([ids])).logits[0, :-1]
    logp = torch.log_softmax(logits, -1)
    p = logp.exp()
    taken = logp.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    mu = (p * logp).sum(-1)
    sigma = (p * (logp - mu[:, None]) ** 2).sum(-1).sqrt()
    n = len(taken)
    scores = {"loss": float(taken.mean())}
    scores["zlib"] = scores["loss"] / len(zlib.compress(text.text.encode(), 6))
    for name, values in (("min_k", taken), ("min_k_plus_plus", (taken - mu) / sigma)):
        ordered = values.sort().values
        scores |= {f"{name}@{k}": float(ordered[: max(1, math.ceil(k * n / 100))].mean()) for k in PERCENTS}
    return scores


@pytest.fixture(scope="module")
def in_double(backend: TransformersBackend, texts: list[Text]) -> dict[Any, dict[str, float]]:
    backend.model.double()
    found = {text.id: reference(backend, text) for text in texts}
    backend.model.float()
    return found


def test_scores_equal_the_definitions(
    backend: TransformersBackend, texts: list[Text], in_double: dict[Any, dict[str, float]]
) -> None:
    records, _ = audit(backend, texts)
    assert sum(bool(expected) for expected in in_double.values()) > COUNT - 20
    for text in texts:
        for name, value in in_double[text.id].items():
            assert records[text.id]["scores"][name] == pytest.approx(value, abs=1e-3), (text.text, name)


def test_order_and_batch_size_change_nothing(backend: TransformersBackend, texts: list[Text]) -> None:
    some = texts[::3]
    together, _ = audit(backend, some)
    backwards, _ = audit(backend, some[::-1])
    spec = backend._spec
    backend._spec = spec.model_copy(update={"score_batch_tokens": 64})
    small, _ = audit(backend, some)
    backend._spec = spec
    for other in (backwards, small):
        for identity, record in together.items():
            for name, value in record["scores"].items():
                if value is None:
                    assert other[identity]["scores"][name] is None
                else:
                    assert other[identity]["scores"][name] == pytest.approx(value, abs=1e-4), name


def test_methods_that_share_a_text_cost_one_scoring_of_it(backend: TransformersBackend, texts: list[Text]) -> None:
    some = texts[-20:]
    shared = ("loss", "zlib", "min_k", "min_k_plus_plus")
    _, alone = audit(backend, some, ("min_k_plus_plus",))
    _, together = audit(backend, some, shared)
    assert len(together) == len(alone) == len(some)
    assert sum(t.computed_tokens for t in together) == sum(t.computed_tokens for t in alone)
