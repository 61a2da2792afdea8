"""How an interview opens: the item put to the candidate, and its first answer read.

The validity filter (``prefilter``) puts the very same question to the evaluator.
"""

from __future__ import annotations

from typing import Any

from evaluation.extraction import extract_answer, is_right
from evaluation.items import Item
from evaluation.protocols import kieval_prompts as prompts
from evaluation.protocols.kieval_options import OpeningOptions
from serving.records import Ask, Prompt, Sampling


def ask_as_candidate(prompt: Prompt, options: OpeningOptions, role: str = "candidate") -> Ask:
    """A greedy answer of the candidate, or of a role that stands in for it."""
    stop = prompts.PLAIN_STOPS if isinstance(prompt, str) else ()
    return Ask(role=role, prompt=prompt, sampling=Sampling(max_tokens=options.candidate_tokens, stop=stop))


def opening(item: Item, options: OpeningOptions, role: str = "candidate") -> Ask:
    """The first thing the candidate is asked."""
    return ask_as_candidate(prompts.candidate(item, None, [], options.candidate_format), options, role)


def read_answer(item: Item, text: str) -> dict[str, Any]:
    """``{"text", "letter", "correct"}``: ``letter`` is None for an open question or where none can be read, ``correct``
    is None where the answer can't be read, or there is no key to compare it with."""
    said = extract_answer(text, item)
    correct = is_right(said, item) if said is not None and item.answer.strip() else None
    return {"text": text, "letter": said if item.choices else None, "correct": correct}
