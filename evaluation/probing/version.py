"""A version of an item on its way through the principles: the wording and the options, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluation.items import LETTERS, Item
from evaluation.templates import quote

_OPTIONS = re.compile(r"\n+[ \t]*Options:[ \t]*\n(?=[ \t]*(?:\([A-Z]\)|-))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """stem: the question without options that stand in its text; tail: these (BIG-Bench Hard), never rewritten
    choices: options of a choice question; empty for an open one
    key: the right choice's index, which no stage of an agent changes; without meaning for an open question
    open_answer: an open question's answer (the label, where it stands for an option of ``tail``)
    context: a passage that the question refers to, never rewritten
    """

    stem: str
    tail: str = ""
    choices: tuple[str, ...] = ()
    key: int = 0
    open_answer: str = ""
    context: str = ""

    @classmethod
    def of(cls, item: Item) -> Version:
        match = None if item.choices else _OPTIONS.search(item.question)
        cut = len(item.question) if match is None else match.start()
        return cls(
            stem=item.question[:cut],
            tail=item.question[cut:],
            choices=item.choices,
            key=item.answer_index if item.choices else 0,
            open_answer="" if item.choices else item.answer,
            context=item.context,
        )

    @property
    def question(self) -> str:
        return f"{self.stem}{self.tail}"

    @property
    def answer(self) -> str:
        """The right answer's text."""
        return self.choices[self.key] if self.choices else self.open_answer

    def asking(self, stem: str) -> Version:
        return replace(self, stem=stem)

    def offering(self, choices: Sequence[str]) -> Version:
        return replace(self, choices=tuple(choices))

    def shown(self) -> str:
        """Passage, question and options as a quotation."""
        parts = [self.context, self.question, lettered(self.choices)]
        return quote("\n".join(part for part in parts if part))


def lettered(choices: Sequence[str]) -> str:
    """``A. first`` ... one option per line, line ends inside an option as spaces."""
    return "\n".join(f"{LETTERS[i]}. {' '.join(choice.split())}" for i, choice in enumerate(choices))
