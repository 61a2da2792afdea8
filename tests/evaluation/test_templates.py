from __future__ import annotations

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.templates import one_line, prompt_hash, quote, render


def test_every_line_is_marked_whatever_ends_it() -> None:
    text = "a\nb\r\nc\rd\u2028e\u2029f\x85g\x0bh\x0ci\x1cj\x1dk\x1el"
    assert quote(text).splitlines() == [f"| {letter}" for letter in "abcdefghijkl"]


def test_a_cut_and_an_empty_text_are_said_in_lines_of_ours() -> None:
    assert quote("x" * 100_000, 10) == "| xxxxxxxxxx\n[... cut]"
    assert quote(" \n ") == "(no text)"
    assert quote("(no text)\n[... cut]") == "| (no text)\n| [... cut]"


def test_controls_and_lone_surrogates_become_the_replacement_character() -> None:
    assert quote("a\x00\x1b[31mb\ud800c") == "| a\ufffd\ufffd[31mb\ufffdc"
    assert quote("\U0001f600") == "| \U0001f600"


@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.none() | st.integers(1, 50))
def test_no_text_escapes_its_quotation(text: str, limit: int | None) -> None:
    quoted = quote(text, limit)
    quoted.encode()
    for line in quoted.splitlines():
        assert line.startswith("|") or line in ("(no text)", "[... cut]")


def test_a_variable_that_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="turns"):
        render("kieval_candidate_plain.jinja", question="?")


def test_values_are_never_read_as_templates() -> None:
    text = render("kieval_candidate_plain.jinja", question="{{ 7 * 7 }} {% raw %} <b>&", turns=[])
    assert "{{ 7 * 7 }} {% raw %} <b>&" in text


def test_hash_and_one_line() -> None:
    assert len(prompt_hash("kieval_evaluator.jinja")) == 64
    assert one_line("a\n b\u2028c") == "a b c"
