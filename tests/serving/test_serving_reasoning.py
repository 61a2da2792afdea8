"""Reasoning is taken out of an answer wherever it stands."""

from __future__ import annotations

import pytest

from serving.engines.common import Answer, split_reasoning

TAGS = ("<think>", "</think>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris.", Answer("", "Paris.", True)),
        ("  Paris.\n", Answer("", "  Paris.\n", True)),
        ("<think>hm</think>\n\nParis.", Answer("hm", "Paris.", True)),
        ("hm, opened in the prompt</think>Paris.", Answer("hm, opened in the prompt", "Paris.", True)),
        ("<think>never closed", Answer("never closed", "", False)),
        ("Paris. <think>never closed", Answer("never closed", "Paris.", False)),
        ("<think>a</think>B<think>c</think>D", Answer("a\nc", "BD", True)),
        ("a</think>B<think>c", Answer("a\nc", "B", False)),
        ("<think></think>B", Answer("", "B", True)),
        ("", Answer("", "", True)),
    ],
)
def test_split(text: str, expected: Answer) -> None:
    assert split_reasoning(text, TAGS) == expected


def test_without_tags_nothing_is_taken_out() -> None:
    assert split_reasoning("<think>a</think>B", None) == Answer("", "<think>a</think>B", True)
