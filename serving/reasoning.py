"""Reasoning text: kept apart from the answer and never judged; an unclosed one makes the answer incomplete."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    """A model's text divided into reasoning and answer. ``complete`` is False where the reasoning never ended."""

    reasoning: str
    text: str
    complete: bool


def split_reasoning(text: str, tags: tuple[str, str] | None) -> Answer:
    """Takes every ``<think>...</think>`` out of a text.

    Templates often open the tag in the prompt, so that only the closing one is in the text: then everything up to the
    first closing tag is reasoning. A tag opened and not closed: everything after it is reasoning, incomplete.
    """
    if tags is None:
        return Answer("", text, True)
    opening, closing = tags
    thoughts: list[str] = []
    first_open, first_close = text.find(opening), text.find(closing)
    if first_close != -1 and (first_open == -1 or first_close < first_open):
        thoughts.append(text[:first_close])
        text = text[first_close + len(closing) :]
    while (start := text.find(opening)) != -1:
        end = text.find(closing, start + len(opening))
        if end == -1:
            thoughts.append(text[start + len(opening) :])
            return Answer("\n".join(thoughts).strip(), text[:start].strip(), False)
        thoughts.append(text[start + len(opening) : end])
        text = text[:start] + text[end + len(closing) :]
    return Answer("\n".join(thoughts).strip(), text.lstrip() if thoughts else text, True)
