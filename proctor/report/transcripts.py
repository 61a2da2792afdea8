"""Transcripts beside the page, as script files that it loads one by one: this works from a file, where fetch doesn't.

    transcripts/rows-000.js      what search and filter go by, 5,000 records a file
    transcripts/page-00000.js    the transcripts themselves, up to 100 or 400 kB a file

Each calls ``proctorLoaded(name, value)`` with JSON. A transcript's place is the record's place in all rows, so a page
is found by the number of its first record.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detection.audit import exam_texts
from detection.verdict import HEADLINE
from evaluation.exam_set import read_exam
from evaluation.items import Item
from evaluation.show.blocks import Block, say
from proctor.report.dialogues import blocks, stop_reason
from proctor.report.item_score import value
from proctor.report.run_data import Evidence
from proctor.report.tokens import token_tables

FOLDER = "transcripts"
ROWS_PER_FILE = 5_000
RECORDS_PER_PAGE = 100
BYTES_PER_PAGE = 400_000
SNIPPET = 160
AUDIT = "detect"


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


def write_transcripts(evidence: Evidence, folder: Path) -> tuple[Index, list[str]]:
    """Writes them below ``folder``, in place of former ones; the index and the files' names."""
    partial = folder / f".{FOLDER}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    index = Index()
    writer = _Writer(partial, index)
    for transcript in _all(evidence):
        writer.add(transcript)
    writer.close()
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    partial.rename(folder / FOLDER)
    return index, [f"{FOLDER}/{file.name}" for file in sorted((folder / FOLDER).iterdir())]


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


def _all(evidence: Evidence) -> Iterator[_Transcript]:
    experiment = evidence.run.experiment
    for exam, config in experiment.exams.items():
        about = {"name": exam, "protocol": config.protocol, "score": _meaning(config.protocol)}
        items = evidence.items(exam)
        for name in experiment.candidates:
            for record in evidence.rows(f"{exam}.{name}"):
                item = items.get(record["item_id"])
                yield _Transcript(
                    exam=about,
                    candidate=name,
                    item=str(record["item_id"]),
                    question=_snippet(item),
                    half=str(record.get("half", "all")),
                    score=value(record),
                    stop=stop_reason(record),
                    blocks=blocks(config.protocol, record, item),
                )
    if experiment.detection is not None:
        yield from _audited(evidence)


def _audited(evidence: Evidence) -> Iterator[_Transcript]:
    """The audited texts, with their tokens' log-probabilities where the ledger has them."""
    experiment = evidence.run.experiment
    assert experiment.detection is not None
    exam = read_exam(evidence.run.stage("exam").path)
    texts = exam_texts(exam.items, exam.leaked, experiment.detection.formats[0], experiment.leak_format)
    items = {item.id: item for item in exam.items}
    by_id = {str(text.id): text for text in texts}
    asked = {(text.prompt, text.answer) if text.prompt else (text.text, ""): str(text.id) for text in texts}
    about = {"name": AUDIT, "protocol": AUDIT, "score": HEADLINE[0]}
    for name in evidence.detected:
        tables = token_tables(evidence, name, asked)
        if asked and not tables:
            evidence.notes[f"The token tables of {name} are missing: its ledger holds none of them (any more)."] = None
        for record in evidence.rows(f"detect.{name}"):
            key = str(record["id"])
            text = by_id.get(key)
            shown = [say("text", text.text if text else "", f"{record['tokens']} tokens scored")]
            if key in tables:
                about_tokens = "log-probability of each token; the first has none"
                shown = [{"t": "tokens", "who": about_tokens, "rows": tables[key]}, *shown]
            scores = [[n, None if v is None else round(v, 4), ""] for n, v in record["scores"].items()]
            shown.append({"t": "verdict", "who": "scores", "rows": scores, "n": "higher: more likely leaked"})
            yield _Transcript(
                exam=about,
                candidate=name,
                item=key,
                question=_snippet(items.get(key)),
                half={1: "leaked", 0: "untouched", None: "all"}[record["label"]],
                score=record["scores"].get(HEADLINE[0]),
                stop="",
                blocks=shown,
            )


MEANINGS = {
    "static": "1 right, 0 wrong",
    "kieval": "KIEval released, 0 to 1",
    "mt_bench": "rating, 1 to 10",
    "pairwise": "1 win, 0.5 tie, 0 loss",
}


def _meaning(protocol: str) -> str:
    return MEANINGS.get(protocol, "score")


def _snippet(item: Item | None) -> str:
    if item is None:
        return ""
    words = " ".join(item.question.split())
    return words if len(words) <= SNIPPET else words[: SNIPPET - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _number(known: list[Any], name: Any) -> int:
    """The place of a name in the list, to which a new one is added."""
    if name not in known:
        known.append(name)
    return known.index(name)


def _json(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
