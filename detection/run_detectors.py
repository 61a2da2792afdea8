"""The chosen detectors on sets of texts: what the detect stage and ``proctor detect`` both do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from detection.audit import Record, audit_dialogue, score_lines, set_dialogue, summarise, verdict
from detection.blind import blind_baseline
from detection.inputs import Inputs, Known, build
from detection.method import Context, Detector, Text
from detection.sets.base import SetTest
from detection.statistics.metrics import benjamini_hochberg
from evaluation.run_exam import Report
from serving.files import read_json, read_jsonl, write_json, write_jsonl, write_text
from serving.ledger import Ledger
from serving.role_engines import Cast, Mode
from serving.scheduler import run_dialogues, wave_size

FILES = ("records.jsonl", "scores.jsonl", "metrics.json")
SET_TESTS = "set_tests.json"
NON_MEMBERS = "non_members.jsonl"
VERDICT = "verdict.json"
CONTROL = "control"
"""Folder of the untouched model's results, below the examined one's."""


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A set of texts, what its detectors share, and known non-members that texts without a label are compared with."""

    texts: Sequence[Text]
    context: Context
    known: Known = ()

    @property
    def compared(self) -> Known:
        """The known non-members that must be scored: none where all texts have a label."""
        return self.known if any(text.label is None for text in self.texts) else ()

    def files(self, inputs: Inputs) -> list[str]:
        """What ``detect`` writes into the set's folder."""
        names = list(FILES)
        names += [SET_TESTS] if inputs.set_tests else []
        return names + ([NON_MEMBERS] if self.compared else [])


def detect(
    sets: Mapping[Path, Examined], inputs: Inputs, *, mode: Mode, ledger_folder: Path, report: Report
) -> dict[str, Any]:
    """Scores every set of texts, loading the models once, and writes its ``Examined.files`` into the set's folder.

    The detectors come first, then one set-level test after the other: adding a test changes no other's batches.
    Returns the usage by role, as measured, and ``long_texts``: what became of texts longer than the context.
    """
    built = {folder: build(inputs, examined.context) for folder, examined in sets.items()}
    ledger = Ledger(ledger_folder)
    total = sum(len(e.texts) + len(e.compared) + len(inputs.set_tests) for e in sets.values())
    done = 0

    def finished(count: int) -> None:
        nonlocal done
        done += count
        report(done, total, "scoring")

    roles = {"candidate": inputs.model}
    if inputs.reference is not None:
        roles["reference"] = inputs.reference
    overlong: list[Record] = []
    with Cast(roles, ledger=ledger, mode=mode, on_start=lambda note: report(done, total, note)) as cast:

        def audit(texts: Sequence[Text], detectors: Sequence[Detector]) -> list[Record]:
            size = wave_size(len(texts), inputs.model.max_num_seqs, single_step=True)
            dialogues = [audit_dialogue(text, detectors, long_texts=inputs.long_texts) for text in texts]
            records = run_dialogues(dialogues, cast, wave=size, on_done=finished)
            overlong.extend(record for record in records if record["overlong"])
            return records

        for folder, examined in sets.items():
            detectors, tests = built[folder]
            records = audit(examined.texts, detectors)
            known = audit(examined.compared, detectors)
            write_jsonl(folder / "records.jsonl", records)
            write_text(folder / "scores.jsonl", "".join(score_lines(records, known)))
            write_json(folder / "metrics.json", clean(summarise(records, known)))
            if known:
                write_jsonl(folder / NON_MEMBERS, known)
            if tests:
                figures = {}
                for test in tests:
                    dialogue = set_dialogue(test, examined.texts, records)
                    figures[test.name] = run_dialogues([dialogue], cast, wave=1, on_done=finished)[0]
                write_json(folder / SET_TESTS, clean(corrected(figures, tests)))
        usage = {role: asdict(value) for role, value in cast.usage.items()}
    ledger.close()
    return {
        "roles": usage,
        "ledger_bad_lines": ledger.bad_lines,
        "long_texts": {
            "policy": inputs.long_texts,
            "texts": len(overlong),
            "overlong_tokens": sum(record["overlong"] for record in overlong),
            "dropped_tokens": sum(record["dropped"] for record in overlong),
        },
    }


def write_verdict(folder: Path, texts: Sequence[Text], *, seed: int) -> None:
    """verdict.json: the verdict on the texts' results in ``folder`` (``detection.verdict``), and the blind baseline.

    The control's results lie in ``folder/control``; without them, or without labels, it is inconclusive and says why.
    """
    blind = blind_baseline(texts, seed=seed)
    control = folder / CONTROL / "records.jsonl"
    base = read_jsonl(control) if control.is_file() else None
    p_values = {name: figures["p_value"] for name, figures in read_json(folder / SET_TESTS).items()}
    found = verdict(read_jsonl(folder / "records.jsonl"), base, blind, seed=seed, set_level=p_values)
    write_json(folder / VERDICT, clean({**found.to_json(), "blind_baseline": {**asdict(blind), "fair": blind.fair}}))


def corrected(figures: Mapping[str, Mapping[str, Any]], tests: Sequence[SetTest]) -> dict[str, dict[str, Any]]:
    """``set_tests.json``: per test its figures, ``p_value_adjusted`` (Benjamini-Hochberg over the tests of the file),
    its paper and version."""
    adjusted = benjamini_hochberg([figures[test.name]["p_value"] for test in tests])
    return {
        test.name: {**figures[test.name], "p_value_adjusted": p, "paper": test.paper, "version": test.version}
        for test, p in zip(tests, adjusted, strict=True)
    }


def clean(value: Any) -> Any:
    """JSON-ready: NaN and infinities become null."""
    return json.loads(json.dumps(value), parse_constant=lambda name: None)
