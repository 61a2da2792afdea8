from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.kieval.free_text import parse_free
from evaluation.kieval.verdict import ASPECTS, STOP_REASONS, parse_structured, verdict_schema, verdict_tokens


def verdict(overall: Any = 3, stop: bool = False, reason: str = "none", **changed: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {name: {"comment": "fine", "score": 3} for name in ASPECTS}
    return {**parts, "overall": {"comment": "well", "score": overall}, "reason": reason, "stop": stop, **changed}


def test_a_structured_verdict_is_read() -> None:
    found = parse_structured(json.dumps(verdict(2, True, "repetition")))
    assert found is not None
    assert (found.overall, found.comment, found.stop, found.reason) == (2, "well", True, "repetition")
    assert found.scores == dict.fromkeys(ASPECTS, 3)
    assert found.to_json() == {**verdict(2, True, "repetition")}


def test_raw_control_characters_in_comments_are_no_obstacle() -> None:
    assert parse_structured(json.dumps(verdict()).replace("well", "we\tll")) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "3",
        json.dumps(verdict())[:-5],
        json.dumps(verdict(0)),
        json.dumps(verdict(5)),
        json.dumps(verdict(True)),
        json.dumps(verdict("three")),
        json.dumps(verdict("3/5")),
        json.dumps(verdict(3.5)),
        json.dumps(verdict(reason="bored")),
        json.dumps(verdict(logic={"comment": "no score"})),
        json.dumps(verdict()).replace('"stop"', '"overall": {"comment": "", "score": 4}, "stop"'),
        json.dumps(verdict()).replace("false", "NaN"),
        "\ufeff" + json.dumps(verdict()),
        json.dumps(verdict()) * 2,
        "[" * 100_000,
        "9" * 5_000,
    ],
)
def test_what_has_not_the_form_is_missing(text: str) -> None:
    assert parse_structured(text) is None


@pytest.mark.parametrize("score", ["3", 3.0, "3.0", "3/4"])
def test_a_judge_may_quote_its_numbers(score: object) -> None:
    quoted = json.dumps(verdict(score)).replace("false", '"no"')
    for found in (parse_structured(quoted), parse_free(f"Here:\n{quoted}")):
        assert found is not None
        assert (found.overall, found.stop) == (3, False)


def test_the_schema_puts_comments_first_and_closes_every_object() -> None:
    schema = verdict_schema(24)
    assert list(schema["properties"]) == [*ASPECTS, "overall", "reason", "stop"] == schema["required"]
    judged = schema["properties"]["overall"]
    assert list(judged["properties"]) == ["comment", "score"]
    assert schema["additionalProperties"] is judged["additionalProperties"] is False
    assert schema["properties"]["reason"]["enum"] == list(STOP_REASONS)
    # vLLM refuses a pattern together with length bounds.
    assert set(judged["properties"]["comment"]) == {"type", "pattern"}


@given(st.from_regex(verdict_schema(24)["properties"]["overall"]["properties"]["comment"]["pattern"], fullmatch=True))
def test_a_comment_never_needs_escapes(comment: str) -> None:
    assert len(comment) <= 24
    assert comment.isascii()
    assert json.dumps(comment) == f'"{comment}"'


@pytest.mark.parametrize("length", [1, 24, 80])
def test_max_tokens_suffice_for_the_longest_verdict(length: int) -> None:
    """Each token spells at least one ASCII character, so characters bound tokens."""
    pattern = verdict_schema(length)["properties"]["overall"]["properties"]["comment"]["pattern"]
    assert re.fullmatch(pattern, "x" * length)
    assert not re.fullmatch(pattern, "x" * (length + 1))
    judged = {"comment": "x" * length, "score": 4}
    longest = json.dumps({**dict.fromkeys((*ASPECTS, "overall"), judged), "reason": "rule_violation", "stop": False})
    assert len(longest) < verdict_tokens(length)


def test_xgrammar_enforces_the_schema() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    accepts = pytest.importorskip("xgrammar.testing")._is_grammar_accept_string
    grammar = xgrammar.Grammar.from_json_schema(
        json.dumps(verdict_schema(24)), any_whitespace=False, separators=(",", ":")
    )

    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    assert accepts(grammar, compact(verdict()))
    assert accepts(grammar, compact(verdict(logic={"comment": "", "score": 1})))
    assert not accepts(grammar, compact(verdict(5)))
    assert not accepts(grammar, compact(verdict(reason="bored")))
    for comment in ("x" * 25, 'a"b', "a\\b", "a\tb", "\u65e5"):
        raw = compact(verdict()).replace("well", comment)
        assert not accepts(grammar, raw), comment
