"""SmolLM2-135M-Instruct through both engines: the same questions, nearly the same answers."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from serving.engines.process import ProcessEngine
from serving.engines.transformers_engine import TransformersBackend
from serving.model.spec import ModelSpec
from serving.records import Completion, Message, Request, Sampling, ScoreRequest

pytestmark = pytest.mark.real

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"verdict": {"enum": ["correct", "wrong"]}, "score": {"type": "integer", "enum": [1, 2, 3, 4]}},
        "required": ["verdict", "score"],
        "additionalProperties": False,
    }
)
QUESTIONS = (
    "What is the capital of France?",
    "What is 2 + 2?",
    "Name a colour of the rainbow.",
    "Is water wet?",
    "Who wrote Hamlet?",
    "What do bees make?",
)
TEXTS = (
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "def add(a, b):\n    return a + b\n",
    "Grass green is sleep the quickly of.",
    "In 1969, two men walked on the moon for the first time.",
)


def ask(question: str, max_tokens: int = 12, schema: str | None = None, **sampling: float) -> Request:
    options = Sampling(max_tokens=max_tokens, **sampling)  # type: ignore[arg-type]
    return Request(prompt=(Message(role="user", content=question),), sampling=options, schema=schema)


GREEDY = [ask(question) for question in QUESTIONS]
MIXED = [
    ask(QUESTIONS[0], 40, SCHEMA),
    ask(QUESTIONS[1]),
    ask(QUESTIONS[2], 40, SCHEMA, temperature=1.0, seed=1),
    ask(QUESTIONS[3], temperature=1.0, seed=1),
    ask(QUESTIONS[3], temperature=1.0, seed=2),
    ask(QUESTIONS[4], 30, stop=(" ",)),  # type: ignore[arg-type]
]


def is_valid(answer: Completion) -> bool:
    value = json.loads(answer.text)
    return (
        set(value) == {"verdict", "score"}
        and value["verdict"] in ("correct", "wrong")
        and value["score"] in range(1, 5)
    )


@pytest.fixture(scope="module")
def transformers_engine(real: Path) -> TransformersBackend:
    return TransformersBackend(ModelSpec(path=str(real), engine="transformers", dtype="bfloat16", max_length=512))


@pytest.fixture(scope="module")
def vllm_engine(real: Path) -> Iterator[ProcessEngine]:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    spec = ModelSpec(
        path=str(real), engine="vllm", dtype="bfloat16", max_length=512, max_num_seqs=8, max_num_batched_tokens=512
    )
    engine = ProcessEngine(spec, fingerprint="f", mode="lockstep", threads=2)
    yield engine
    engine.close()


@pytest.fixture(params=["transformers", "vllm"])
def engine(request: pytest.FixtureRequest) -> TransformersBackend | ProcessEngine:
    value: TransformersBackend | ProcessEngine = request.getfixturevalue(f"{request.param}_engine")
    return value


def test_a_mixed_batch(engine: TransformersBackend | ProcessEngine) -> None:
    answers = engine.generate(MIXED)
    assert is_valid(answers[0])
    assert is_valid(answers[2])
    assert (answers[0].finish_reason, answers[0].complete) == ("stop", True)
    assert re.search(r"\b4\b", answers[1].text)
    assert answers[3].text != answers[4].text
    assert " " not in answers[5].text
    assert (answers[5].finish_reason, answers[5].complete) == ("stop", True)
    assert engine.generate(MIXED) == answers


def test_seeded_sampling_of_more_prompts_than_one_step_holds(engine: TransformersBackend | ProcessEngine) -> None:
    # vLLM on a CPU dies where the second of these prompts is cut in two
    long = [ask(f"{word} " * 300 + question, temperature=0.7, seed=7) for word, question in zip("abcd", QUESTIONS)]  # noqa: B905
    answers = engine.generate(long)
    assert all(answer.output_tokens > 0 and answer.prompt_tokens > 300 for answer in answers)


def test_order_context_and_empty_prompts(engine: TransformersBackend | ProcessEngine) -> None:
    long = ask("very " * 600)
    empty = Request(prompt="", sampling=Sampling(max_tokens=4))
    answers = engine.generate([GREEDY[1], long, empty, GREEDY[0], ask(QUESTIONS[5], 1)])
    assert [a.finish_reason for a in answers[1:3]] == ["context", "context"]
    assert "4" in answers[0].text
    assert "Paris" in answers[3].text
    assert (answers[4].finish_reason, answers[4].output_tokens, answers[4].complete) == ("length", 1, False)
    assert [a.finish_reason for a in engine.generate([long])] == ["context"]


def test_vllm_answers_as_transformers_do(vllm_engine: ProcessEngine, transformers_engine: TransformersBackend) -> None:
    theirs, ours = vllm_engine.generate(GREEDY), transformers_engine.generate(GREEDY)
    same = [a == b for a, b in zip(theirs, ours, strict=True)]
    assert sum(same) >= len(same) - 2, [(a.text, b.text) for a, b in zip(theirs, ours, strict=True) if a != b]
    assert [a.prompt_tokens for a in theirs] == [b.prompt_tokens for b in ours]


def test_vllm_scores_as_transformers_do(vllm_engine: ProcessEngine, transformers_engine: TransformersBackend) -> None:
    requests = [
        *(ScoreRequest(prompt=text) for text in TEXTS),
        ScoreRequest(prompt=(Message(role="user", content=QUESTIONS[0]),), continuation="Paris.", answer_only=True),
        ScoreRequest(prompt="a"),
        ScoreRequest(prompt="long " * 700, continuation="end", answer_only=True),
    ]
    theirs, ours = vllm_engine.score(requests), transformers_engine.score(requests)
    differences: list[float] = []
    for a, b in zip(theirs[:5], ours[:5], strict=True):
        assert (a.ids, a.segments) == (b.ids, b.segments)
        differences += [abs(x - y) for x, y in zip(a.logprobs, b.logprobs, strict=True)]
    assert fmean(differences) < 0.05, "more than bfloat16 explains"
    assert max(differences) < 0.5
    assert theirs[5].ids == ours[5].ids == ()
    assert theirs[6].ids == ours[6].ids
    assert theirs[6].dropped >= ours[6].dropped > 0
    backwards = vllm_engine.score(requests[::-1])[::-1]
    for a, b in zip(theirs, backwards, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=0.05)
    with pytest.raises(ValueError, match="gives log-probabilities only; moments need the transformers engine"):
        vllm_engine.score([ScoreRequest(prompt="a b", moments=True)])


def test_fp32_scores_do_not_depend_on_the_batch(real: Path) -> None:
    backend = TransformersBackend(ModelSpec(path=str(real), engine="transformers", dtype="float32", max_length=512))
    requests = [ScoreRequest(prompt=text, moments=True) for text in TEXTS]
    for request, table in zip(requests, backend.score(requests), strict=True):
        alone = backend.score([request])[0]
        assert table.ranks == alone.ranks
        for name in ("logprobs", "means", "stds"):
            assert getattr(table, name) == pytest.approx(getattr(alone, name), abs=1e-4)
