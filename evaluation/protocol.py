"""What an exam protocol is: options, one generator per item, and arithmetic on its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from evaluation.items import Item
from serving.records import Dialogue

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
