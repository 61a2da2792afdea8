"""What a detector is: a generator that asks a model about one text and returns named scores.

Higher always means: more likely a member of the training data. A score of NaN means: unscorable (a text of 0 or 1
tokens, or a segment without tokens); it is counted and never enters a statistic.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from evaluation.items import Item
from serving.model.spec import ModelSpec
from serving.records import Dialogue, Score, TokenScores
from serving.settings import checked_options

Need = Literal[
    "log_probabilities",
    "full_vocabulary",
    "generations",
    "reference_model",
    "corpus",
    "non_members",
    "members",
    "items",
]
"""``non_members``, ``members``: known texts beside those under examination; ``items``: the texts are exam items."""
Label = Literal[0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text under examination.

    label: 1 member (leaked), 0 non-member, None unknown
    prompt: the beginning of ``text`` that is the prompt, "" if the text has no such part; scores are then also given
        for the prompt and for the answer (the rest). ValueError unless it begins the text and leaves an answer.
    item: the exam item that the text spells, None for any other text
    """

    id: str | int
    text: str
    label: Label | None = None
    prompt: str = ""
    item: Item | None = None

    def __post_init__(self) -> None:
        if self.prompt and (not self.text.startswith(self.prompt) or self.text == self.prompt):
            raise ValueError(
                f"text {self.id!r}: its prompt {self.prompt[:60]!r} must begin the text, and not be all of it"
            )

    @property
    def answer(self) -> str:
        """What follows the prompt: the whole text where there is no prompt."""
        return self.text[len(self.prompt) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the detectors of one audit share.

    full_vocabulary: whether any chosen detector needs moments over the full vocabulary
    seed: of everything that a detector draws (with the text's id: ``serving.records.derive_seed``)
    options: by detector name, what differs from its ``Options``' defaults
    non_members, members: known texts, none of them under examination
    corpus: a text file or folder of text files whose word frequencies stand for the training data
    reference: whether a reference model plays the role ``reference``
    model: the candidate, for a method that needs its tokenizer; its folder is not touched before the first text
    benchmark: how the benchmark is called when a model is asked about it by name, "" for no name
    """

    full_vocabulary: bool = False
    seed: int = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    non_members: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    corpus: Path | None = None
    reference: bool = False
    model: ModelSpec | None = None
    benchmark: str = ""


class DetectorOptions(BaseModel):
    """Base of every detector's ``Options``: types are checked strictly, unknown keys are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


_MENDS: dict[Need, str] = {
    "reference_model": "name one with --reference DIR (detection.reference in an experiment)",
    "corpus": "name one with --corpus PATH (detection.corpus)",
    "non_members": "name a file of texts the model can't have seen with --non-members FILE (detection.non_members)",
    "members": "name a file of texts the model is known to have seen with --members FILE (detection.members)",
}


class Method(ABC):
    """What every method of detection has, of one text (``Detector``) or of a set (``detection.sets.base.SetTest``).

    name: as on the command line
    version: raised when the scores change
    needs: what must be there to run it
    passes: cost in forward passes per text (the shared token table counts as 1)
    paper: where the method was published
    Options: the pydantic model of its settings, each with its default
    prompts: its prompt files in ``detection/templates``

    ValueError from the constructor for something it needs and the context lacks, and for wrong options.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    needs: ClassVar[tuple[Need, ...]]
    passes: ClassVar[int]
    paper: ClassVar[str]
    Options: ClassVar[type[DetectorOptions]] = DetectorOptions
    prompts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        if "full_vocabulary" in self.needs and not context.full_vocabulary:
            raise ValueError(f"{self.name} needs Context(full_vocabulary=True)")
        there = {
            "reference_model": context.reference,
            "corpus": context.corpus is not None,
            "non_members": bool(context.non_members),
            "members": bool(context.members),
        }
        for need in self.needs:
            if not there.get(need, True):
                raise ValueError(f"{self.name} needs {need.replace('_', ' ')}: {_MENDS[need]}")
        self.context = context
        self.options: Any = checked_options(self.name, self.Options, context.options.get(self.name, {}))


class Detector(Method):
    """A method that scores one text. The scores are called ``name``, ``name@k``, and ``.../prompt``, ``.../answer``."""

    @classmethod
    def check(cls, texts: Sequence[Text], context: Context) -> None:
        """ValueError where none of these texts can get a score, for want of something that belongs to them."""
        if "items" in cls.needs and not any(text.item for text in texts):
            raise ValueError(
                f"{cls.name} needs exam items, and these are plain texts; use it in an experiment's detection"
            )

    @abstractmethod
    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        """Asks about ``text`` and returns its scores by name (NaN: unscorable), the same names for every text of the
        same form (with or without a prompt)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The tokens of one segment of a text, as parallel lists.

    suffix: "" for the whole text, "/prompt", "/answer"; it follows the score's name
    ids, logprobs, means, stds: see TokenScores; the last two are empty where the table has no moments
    """

    suffix: str
    text: str
    logprobs: Sequence[float]
    means: Sequence[float] = ()
    stds: Sequence[float] = ()
    ids: Sequence[int] = ()


class TableDetector(Detector):
    """A detector that is arithmetic on the token table of the text as it stands."""

    passes = 1

    @abstractmethod
    def scores(self, part: Part) -> dict[str, float]:
        """The named scores of one part; NaN where the part has no tokens."""

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        tokens: TokenScores = yield table(text, self.context.full_vocabulary)
        named = {}
        for part in parts(text, tokens):
            for name, value in self.scores(part).items():
                named[name + part.suffix] = value
        return named


def table(text: Text, moments: bool) -> Score:
    """The one request for a text's token table, equal for all detectors that need it: so it is computed once."""
    if text.prompt:
        return Score(role="candidate", prompt=text.prompt, continuation=text.answer, moments=moments)
    return Score(role="candidate", prompt=text.text, moments=moments)


def parts(text: Text, tokens: TokenScores) -> list[Part]:
    """The whole text, and, where it has a prompt, prompt and answer. Tokens of the segments ``bos`` and ``template``
    are the format's, not the text's: they belong to no part."""
    wanted: list[tuple[str, str, tuple[str, ...]]] = [("", text.text, ("prompt", "answer"))]
    if text.prompt:
        wanted += [("/prompt", text.prompt, ("prompt",)), ("/answer", text.answer, ("answer",))]
    found = []
    for suffix, string, segments in wanted:
        at = [i for i, segment in enumerate(tokens.segments) if segment in segments]
        found.append(
            Part(
                suffix=suffix,
                text=string,
                logprobs=[tokens.logprobs[i] for i in at],
                means=[tokens.means[i] for i in at] if tokens.means else (),
                stds=[tokens.stds[i] for i in at] if tokens.stds else (),
                ids=[tokens.ids[i] for i in at],
            )
        )
    return found


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, exactly rounded (so independent of the order); NaN for none."""
    return math.fsum(values) / len(values) if values else math.nan


def ratio(numerator: float, denominator: float) -> float:
    """NaN where the denominator is 0: every token was certain, and the text can't be compared with anything."""
    return numerator / denominator if denominator else math.nan


def lowest_means(values: Sequence[float], percents: Sequence[int]) -> dict[int, float]:
    """For each k in ``percents``: the mean of the lowest ceil(k n / 100) of the n values, at least one; NaN for none,
    or where a value is NaN (which has no place in an order).

    The count is taken in integers: ceil(0.07 * 100) is 8 in floating point.
    """
    if any(map(math.isnan, values)):
        return dict.fromkeys(percents, math.nan)
    ascending = sorted(values)
    return {k: mean(ascending[: max(1, -(-k * len(ascending) // 100))]) for k in percents}
