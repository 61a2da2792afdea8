"""What an exam protocol is: options, one generator per item, and arithmetic on its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from evaluation.items import Item
from evaluation.show.blocks import Block
from evaluation.show.table import Column, Table
from serving.records import Dialogue

if TYPE_CHECKING:
    from evaluation.show.plate import Plate, Style

Record = dict[str, Any]
"""A JSON-able record, ``item_id`` first. It holds no wall-clock time, so that a run can be repeated byte for byte."""


class ProtocolOptions(BaseModel):
    """Base of every protocol's ``Options``: types are checked strictly, unknown keys are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ExamProtocol(Protocol):
    """An exam.

    name: its name in experiment files
    version: raised when its code changes what it computes; part of a stage's input digest
    roles: the models it needs, the examined one first
    Options: the pydantic model of its settings, each with its default where there is one
    """

    name: ClassVar[str]
    version: ClassVar[int]
    roles: ClassVar[tuple[str, ...]]
    Options: ClassVar[type[ProtocolOptions]]

    def __init__(self, options: Any, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        """options: an instance of ``Options``; exemplars: the pool that few-shot examples are drawn from."""

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        """One generator per item, in the order of the items. ValueError (at once) for items it can't examine."""
        ...

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The figures of a set, from its records alone (as written to JSON). No records: counts 0, figures None."""
        ...

    def prompt_hashes(self) -> dict[str, str]:
        """SHA-256 of every prompt file it uses, by file name."""
        ...


class GroupProtocol(Protocol):
    """An exam of several models together: like an exam protocol, but its roles are the models it is made with.

    name, version, Options: as an exam protocol's
    """

    name: ClassVar[str]
    version: ClassVar[int]
    Options: ClassVar[type[ProtocolOptions]]

    def __init__(self, options: Any, *, candidates: Sequence[str], seed: int) -> None:
        """options: an instance of ``Options``; candidates: the models' names."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The candidates, and who else takes part."""
        ...

    def assignments(self) -> list[Item] | None:
        """The items that it makes itself; None: it is held on those it is given."""
        ...

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        """One generator per item, in the order of the items."""
        ...

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The figures of the group, from the records alone (as written to JSON)."""
        ...

    def prompt_hashes(self) -> dict[str, str]:
        """SHA-256 of every prompt file it uses, by file name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished exam.

    items: the exam, in order, with unique ids; ``source_id`` names the seed an item was made of
    summary: figures of how it was made (yield of every step, reasons for rejection, attempts, shortfall), JSON-able
    sets: other exams made in the same run by name (``set-2``, ``train``), items alike; often empty
    """

    items: Sequence[Item]
    summary: Mapping[str, Any]
    sets: Mapping[str, Sequence[Item]]


class ExamBuilder(Protocol):
    """Models that write an exam: dialogues as in an exam protocol, then arithmetic that makes items of their records.

    name: its name in experiment files and for ``proctor build``
    version: raised when its code changes what it computes; part of a stage's input digest
    seeds: whether it starts from the items of a benchmark (else it gets none)
    Options: the pydantic model of its settings, each with its default where there is one
    rehearsal: rules of a scripted model (``serving.engines.scripted_engine``) whose first reply can always be used, so
        that a rehearsal counts the calls of an exam that comes out whole
    size_option: the option that says how large the exam is, of a builder without seeds ("" of one with seeds)
    """

    name: ClassVar[str]
    version: ClassVar[int]
    seeds: ClassVar[bool]
    Options: ClassVar[type[ProtocolOptions]]
    rehearsal: ClassVar[Sequence[Mapping[str, str]]]
    size_option: ClassVar[str]

    def __init__(self, options: Any, *, seed: int) -> None:
        """options: an instance of ``Options``; seed: the experiment's, from which every draw derives."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The models it needs, the one that writes first. May depend on the options."""
        ...

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        """The conversations that make the exam, in a fixed order. ValueError (at once) for seeds it can't use."""
        ...

    def finish(self, items: Sequence[Item], records: Sequence[Mapping[str, Any]]) -> Built:
        """The exam, from the seeds and the records (as written to JSON) alone: no model is asked here."""
        ...

    def prompt_hashes(self) -> dict[str, str]:
        """SHA-256 of every prompt file it uses, by file name."""
        ...


@dataclass(frozen=True, kw_only=True)
class Held:
    """One exam, group, build or analysis as it came out: what its kind shows itself from.

    options: as given in the experiment file; what isn't given has its default
    metrics: of an exam by candidate and half (``leaked``, ``untouched``; ``all`` where nothing leaks) what
        ``summarise`` gave; of all others the stage's metrics.json
    items: equal for two exams of the same items
    counts: ``counts`` of all records of an exam together
    plots: the stage's plots.json (of analyses)
    """

    options: Mapping[str, Any]
    metrics: Mapping[str, Any]
    items: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    plots: Mapping[str, Any] = field(default_factory=dict)


class Shows(Protocol):
    """What a protocol, group, builder or analysis may say of itself for a report. Each of these is optional, a static
    method or an attribute of its class; a report asks for those that are there, and lays out what it gets.

    ``held`` are all exams (groups, builds, analyses) of this kind in one experiment by their names, none of them empty:
    so that two of them can be compared. Names of tables and plates become file names, so let them end in the name of
    what is shown (``apart``); of two of one name the second gets ``_2``. Captions are sentences, with full stops.

    columns, row, called: of a protocol that stands in the contamination table
    score_said: what ``score`` is, in a few words (``1 right, 0 wrong``)
    right_or_wrong: whether ``score`` is 1 or 0, but for ties, and of an exam with keys
    rehearsed: of a group: False where its calls can't be counted with scripted answers
    examined: of a group: False where its candidates answer none of its items
    """

    columns: ClassVar[Sequence[Column]]
    called: ClassVar[str]
    score_said: ClassVar[str]
    right_or_wrong: ClassVar[bool]
    rehearsed: ClassVar[bool]
    examined: ClassVar[bool]

    @staticmethod
    def row(halves: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """A candidate's figures for summary.json, by the keys of ``columns``; all None where there are no halves."""
        ...

    @staticmethod
    def score(record: Mapping[str, Any]) -> float | None:
        """One number per record, or None without a result. Without this: ``score``, else ``correct`` of the record."""
        ...

    @staticmethod
    def shown(record: Mapping[str, Any]) -> list[Block]:
        """A record as a transcript (``evaluation.show.blocks``). Without this it is shown as JSON."""
        ...

    @staticmethod
    def counts(record: Mapping[str, Any]) -> Counter[str]:
        """What is to be counted over all records of an exam, for ``notices``: they are read once."""
        ...

    @staticmethod
    def tables(held: Mapping[str, Held]) -> list[Table]:
        """The report's tables of this kind."""
        ...

    @staticmethod
    def plots(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
        """The report's figures of this kind. style: how each candidate of the run is drawn."""
        ...

    @staticmethod
    def notices(held: Mapping[str, Held]) -> Iterator[str]:
        """What the examiners' own answers say about them, in sentences."""
        ...

    @staticmethod
    def published(benchmark: str) -> Table | None:
        """A paper's figures on this benchmark, to stand beside a user's own."""
        ...

    def prefilter(self) -> ExamProtocol:
        """Of an exam: the exam that its evaluator takes first; only items that it answers right are kept."""
        ...

    def unfit(self, setting: str) -> str:
        """Of a builder: why a recipe's setting can't name such a build, a sentence's end; "" where it can."""
        ...
