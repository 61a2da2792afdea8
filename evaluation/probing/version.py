"""A version of an item on its way through the principles: the wording and the options, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

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


PRINCIPLES: Final = {
    "p1": "paraphrase the question",
    "p2": "paraphrase the choices",
    "p3": "permute the choices",
    "p4": "add context",
    "p5": "add a choice",
}
SETS: Final[dict[str, tuple[str, ...]]] = {
    "all": ("p1", "p2", "p3", "p4", "p5"),
    **{name: (name,) for name in PRINCIPLES},
    "LU": ("p1", "p2", "p3"),
    "PS": ("p4",),
    "DK": ("p5",),
    "level1": ("p1",),
    "level2": ("p1", "p4"),
    "level3": ("p1", "p4", "p5"),
}
"""Named sets: all, each principle alone, the abilities (language understanding, problem solving, domain knowledge) and
the levels of complexity."""
ABILITIES: Final = ("LU", "PS", "DK")
LEVELS: Final = ("level1", "level2", "level3")
QUESTION_CHAIN: Final = ("p1", "p4")
CHOICE_CHAIN: Final = ("p2", "p5")
"""By an agent; p3 follows, by code."""
ABILITY_OF: Final = {"p1": "LU", "p2": "LU", "p3": "LU", "p4": "PS", "p5": "DK"}


def chain(principles: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """The stages that ``principles`` need along one chain, each named by all that is done up to it.

    ``("p1", "p1+p4")`` for p1 and p4; ``("p4",)`` for p4 alone.
    """
    wanted = [name for name in order if name in principles]
    return tuple("+".join(wanted[: i + 1]) for i in range(len(wanted)))


def stages(sets: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """All stages that these named sets need along one chain, each after the one it builds on, each once."""
    needed = dict.fromkeys(stage for name in sets for stage in chain(SETS[name], order))
    return tuple(sorted(needed, key=lambda stage: (stage.count("+"), list(needed).index(stage))))


def applicable(principles: Sequence[str], *, choice: bool) -> tuple[str, ...]:
    """The principles that can be applied: to an open question p1 and p4 only."""
    return tuple(name for name in principles if choice or name in QUESTION_CHAIN)
