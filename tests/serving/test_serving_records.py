"""Records stand alone, refuse nonsense, and seeds depend on nothing but their parts."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys

import pytest

from serving.records import (
    Ask,
    Message,
    Request,
    Sampling,
    Score,
    ScoreRequest,
    TokenScores,
    canonical_json,
    derive_seed,
)


def test_importing_records_imports_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import serving.records;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['serving']"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": 1, "temperature": -0.1}, "temperature is -0.1"),
        ({"max_tokens": 1, "temperature": 5.1}, "temperature is 5.1"),
        ({"max_tokens": 1, "temperature": 0.005}, "use 0 \\(greedy\\) or at least 0.01"),
        ({"max_tokens": 1, "temperature": float("nan")}, "temperature is nan"),
        ({"max_tokens": 1, "top_p": 0.0}, "top_p is 0.0"),
        ({"max_tokens": 1, "top_p": 1.01}, "top_p is 1.01"),
    ],
)
def test_sampling_refuses_and_names_the_value(values: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Sampling(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [0.0, 0.01, 5.0])
def test_sampling_accepts_the_ends_of_its_ranges(temperature: float) -> None:
    assert Sampling(max_tokens=1, temperature=temperature, top_p=1.0).temperature == temperature


def test_an_answer_without_continuation_is_refused() -> None:
    with pytest.raises(ValueError, match="answer_only needs a continuation"):
        ScoreRequest(prompt="a", answer_only=True)


def test_records_are_frozen_hashable_and_survive_a_process_boundary() -> None:
    chat = (Message(role="user", content="a\ud800"),)
    request = Request(prompt=chat, sampling=Sampling(max_tokens=3, stop=("x",)), schema="{}")
    assert pickle.loads(pickle.dumps(request)) == request
    assert len({request, dataclasses.replace(request)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.schema = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        Message("user", "positional")  # type: ignore[misc]


def test_an_ask_becomes_a_request_with_its_schema_in_canonical_form() -> None:
    ask = Ask(role="r", prompt="p", sampling=Sampling(max_tokens=1), schema={"b": 1, "a": ["é"]})
    assert ask.request() == Request(prompt="p", sampling=Sampling(max_tokens=1), schema='{"b":1,"a":["é"]}')
    assert Ask(role="r", prompt="p", sampling=Sampling(max_tokens=1)).request().schema is None


def test_a_score_passes_every_field_on() -> None:
    score = Score(role="r", prompt="p", continuation="c", bos="never", answer_only=True, moments=True)
    expected = ScoreRequest(prompt="p", continuation="c", bos="never", answer_only=True, moments=True)
    assert score.request() == expected


def test_canonical_json_keeps_the_order_of_keys() -> None:
    assert canonical_json({"z": 1, "a": None, "m": [True, 0.5]}) == '{"z":1,"a":null,"m":[true,0.5]}'


def test_derived_seeds_are_the_ones_of_every_machine() -> None:
    # first four bytes of sha256("17\x1fitem-3\x1fask\x1f0") (from sha256sum), without the last bit
    assert derive_seed(17, "item-3", "ask", 0) == 0xC9AAA4CB >> 1
    assert 0 <= derive_seed("\ud800") < 2**31
    assert len({derive_seed(17, "item", step) for step in range(500)}) == 500


def test_the_log_probability_of_an_answer_sums_its_tokens_only() -> None:
    table = TokenScores(ids=(1, 2, 3), logprobs=(-1.0, -0.25, -0.5), segments=("prompt", "answer", "answer"))
    assert table.answer_logprob() == -0.75
    assert TokenScores(ids=(), logprobs=(), segments=()).answer_logprob() == 0.0
    with pytest.raises(ValueError):
        TokenScores(ids=(1,), logprobs=(-1.0,), segments=()).answer_logprob()
