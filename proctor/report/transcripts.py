"""Transcripts beside the page, as script files that it loads one by one: this works from a file, where fetch doesn't.

    transcripts/rows-000.js      what search and filter go by, 5,000 records a file
    transcripts/page-00000.js    the transcripts themselves, up to 100 or 400 kB a file

Each calls ``proctorLoaded(name, value)`` with JSON. A transcript's place is the record's place in all rows, so a page
is found by the number of its first record.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detection.audit import exam_texts
from detection.verdict import HEADLINE
from evaluation import registry
from evaluation.exam_set import read_exam
from evaluation.items import Item
from evaluation.show.blocks import Block, as_it_stands, item_block, say, verdict
from proctor.experiment.made import seeds_stage
from proctor.report.item_score import value
from proctor.report.present import Rows
from proctor.report.run_data import RunData, items_of
from proctor.report.tokens import token_tables
from proctor.run_folder.run import RunFolder

FOLDER = "transcripts"
ROWS_PER_FILE = 5_000
RECORDS_PER_PAGE = 100
BYTES_PER_PAGE = 400_000
SNIPPET = 160
AUDIT = "detect"
TOGETHER = "(together)"
"""In the place of a candidate where several take part, or none does."""
Record = Mapping[str, Any]


@dataclass
class Index:
    """What the page itself must know; the rest is loaded.

    exams: name, protocol and what a score is; starts: the first record of every page file; row_files: how many
    Names are numbered in the order in which they come up.
    """

    exams: list[dict[str, str]] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    halves: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    total: int = 0
    row_files: int = 0


@dataclass(frozen=True)
class _Transcript:
    exam: dict[str, str]
    candidate: str
    item: str
    question: str
    half: str
    score: float | None
    stop: str
    blocks: list[Block]


class Transcripts:
    """Writes them below ``folder``, in place of former ones once it is closed."""

    def __init__(self, run: RunFolder, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.partial = folder / f".{FOLDER}"
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)
        self.index = Index()
        self.writer = _Writer(self.partial, self.index)

    def sat(self, exam: str, candidate: str, rows: Rows) -> None:
        """One candidate's exam."""
        protocol = self.run.experiment.exams[exam].protocol
        self.records(exam, protocol, registry.protocol(protocol), candidate, rows, items_of(self.run, exam))

    def records(
        self, name: str, kind: str, shows: Any, candidate: str, rows: Iterable[Record], items: Mapping[str, Item]
    ) -> None:
        """shows: the class whose hooks say what a record's score is and how it is read"""
        about = {"name": name, "protocol": kind, "score": getattr(shows, "score_said", "score")}
        score = getattr(shows, "score", value)
        for record in rows:
            item = items.get(record["item_id"])
            question = item.question if item else str(record.get("question") or record.get("domain") or "")
            self.writer.add(
                _Transcript(
                    exam=about,
                    candidate=candidate,
                    item=str(record["item_id"]),
                    question=_snippet(question),
                    half=str(record.get("half", "all")),
                    score=score(record),
                    stop=_stop_reason(record),
                    blocks=_blocks(shows, record, item),
                )
            )

    def close(self, data: RunData) -> tuple[Index, list[str]]:
        """After the exams the groups, builds and the audit; the index and the files' names."""
        experiment, run = data.experiment, data.run
        for name, group in experiment.groups.items():
            shows, rows = registry.group_protocol(group.protocol), data.rows(f"group.{name}")
            self.records(name, group.protocol, shows, TOGETHER, rows, items_of(run, name))
        for name, build in experiment.builds.items():
            made, own = registry.builder(build.builder), f"build.{name}"
            self.records(own, build.builder, made, TOGETHER, data.rows(own), _seeds(run, name))
        if experiment.detection is not None:
            for transcript in _audited(data):
                self.writer.add(transcript)
        self.writer.close()
        shutil.rmtree(self.folder / FOLDER, ignore_errors=True)
        self.partial.rename(self.folder / FOLDER)
        return self.index, [f"{FOLDER}/{file.name}" for file in sorted((self.folder / FOLDER).iterdir())]


class _Writer:
    """Cuts a stream of transcripts into files; holds one file's worth."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder = folder
        self.index = index
        self.rows: list[list[Any]] = []
        self.page: list[str] = []
        self.size = 0
        self.items: dict[str, int] = {}
        self.new_items: list[list[str]] = []
        self.seen: dict[tuple[str, str, str], int] = {}

    def add(self, one: _Transcript) -> None:
        index = self.index
        key = (one.exam["name"], one.candidate, one.item)
        self.seen[key] = self.seen.get(key, 0) + 1
        if one.item not in self.items:
            self.items[one.item] = len(self.items)
            self.new_items.append([one.item, one.question])
        self.rows.append(
            [
                _number(index.exams, one.exam),
                _number(index.candidates, one.candidate),
                self.items[one.item],
                _number(index.halves, one.half),
                None if one.score is None else round(one.score, 3),
                _number(index.stops, one.stop),
                self.seen[key],
            ]
        )
        text = _json(one.blocks)
        if self.page and (len(self.page) >= RECORDS_PER_PAGE or self.size + len(text) > BYTES_PER_PAGE):
            self._end_page()
        self.page.append(text)
        self.size += len(text)
        index.total += 1
        if len(self.rows) >= ROWS_PER_FILE:
            self._end_rows()

    def close(self) -> None:
        if self.page:
            self._end_page()
        if self.rows:
            self._end_rows()

    def _end_page(self) -> None:
        self._write(f"page-{len(self.index.starts):05}", f"[{','.join(self.page)}]")
        self.index.starts.append(self.index.total - len(self.page))
        self.page, self.size = [], 0

    def _end_rows(self) -> None:
        self._write(f"rows-{self.index.row_files:03}", _json({"items": self.new_items, "rows": self.rows}))
        self.index.row_files += 1
        self.rows, self.new_items = [], []

    def _write(self, name: str, text: str) -> None:
        # lone surrogates of model text become escapes, which JSON and JavaScript read back
        data = f"proctorLoaded({json.dumps(name)},{text});\n".encode("utf-8", "backslashreplace")
        (self.folder / f"{name}.js").write_bytes(data)


def _seeds(run: RunFolder, build: str) -> Mapping[str, Item]:
    """The items that a build started from, by id; {} where it has none, or draws its own."""
    stage = seeds_stage(run.experiment, build)
    return {} if stage is None else {item.id: item for item in read_exam(run.stage(stage).path).items}


def _blocks(shows: Any, record: Record, item: Item | None) -> list[Block]:
    """The item, then what the record says of it."""
    before = [] if item is None else [item_block(item)]
    try:
        return [*before, *getattr(shows, "shown", as_it_stands)(record)]
    except (KeyError, TypeError, AttributeError):  # another version of the protocol wrote it
        return [*before, *as_it_stands(record)]


def _stop_reason(record: Record) -> str:
    """Why it ended: its own reason, else how the reply or the extraction ended; "" if nothing says."""
    return str(record.get("stop_reason") or record.get("finish_reason") or record.get("status") or "")


def _audited(data: RunData) -> Iterator[_Transcript]:
    """The audited texts, with their tokens' log-probabilities where the ledger has them."""
    experiment = data.experiment
    assert experiment.detection is not None
    exam = read_exam(data.run.stage("exam").path)
    texts = exam_texts(exam.items, exam.leaked, experiment.detection.formats[0], experiment.leak_format)
    items = {item.id: item for item in exam.items}
    by_id = {str(text.id): text for text in texts}
    asked = {(text.prompt, text.answer) if text.prompt else (text.text, ""): str(text.id) for text in texts}
    about = {"name": AUDIT, "protocol": AUDIT, "score": HEADLINE[0]}
    for name, records in data.detected.items():
        tables = token_tables(data, name, asked)
        if asked and not tables:
            data.notes[f"The token tables of {name} are missing: its ledger holds none of them (any more)."] = None
        for record in records:
            key = str(record["id"])
            text = by_id.get(key)
            shown = [say("text", text.text if text else "", f"{record['tokens']} tokens scored")]
            if key in tables:
                about_tokens = "log-probability of each token; the first has none"
                shown = [{"t": "tokens", "who": about_tokens, "rows": tables[key]}, *shown]
            scores = [[n, None if v is None else round(v, 4), ""] for n, v in record["scores"].items()]
            shown.append(verdict("scores", scores, "higher: more likely leaked"))
            yield _Transcript(
                exam=about,
                candidate=name,
                item=key,
                question=_snippet(items[key].question if key in items else ""),
                half={1: "leaked", 0: "untouched", None: "all"}[record["label"]],
                score=record["scores"].get(HEADLINE[0]),
                stop="",
                blocks=shown,
            )


def _snippet(question: str) -> str:
    words = " ".join(question.split())
    return words if len(words) <= SNIPPET else words[: SNIPPET - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _number(known: list[Any], name: Any) -> int:
    """The place of a name in the list, to which a new one is added."""
    if name not in known:
        known.append(name)
    return known.index(name)


def _json(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
