"""What exams, groups and builds show of themselves in a report: tables, figures, transcripts that can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation import registry
from evaluation.lm_examiner.build import LMExaminerBuilder
from evaluation.lm_examiner.marking import MAXIMA
from evaluation.show.blocks import as_it_stands
from proctor.report import present
from proctor.report.write import write_report
from proctor.run_folder.run import open_run
from serving.files import read_jsonl
from tests.proctor.scripted import do, scripted

MARKS = json.dumps({**MAXIMA, "comment": "Fine."})
EXAMINER = {
    "engine": "scripted",
    "path": "e",
    "engine_args": {"replies": [*LMExaminerBuilder.rehearsal, {"match": "Mark the answer", "reply": MARKS}]},
}
EXAMS = {
    "asked": {"protocol": "lm_examiner", "limit": 2, "options": {"retries": 0}},
    "shots": {"protocol": "lm_examiner", "limit": 2, "options": {"retries": 0, "few_shot": 2}},
    "rated": {"protocol": "mt_bench", "limit": 2},
    "graded": {"protocol": "idgen", "limit": 2},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown")
    models = {name: {"path": name, "engine": "scripted"} for name in ("m", "q")}
    value = scripted(
        models={**models, "e": EXAMINER},
        exams=EXAMS,
        groups={"ranked": {"protocol": "ranking", "limit": 2}, "style": {"protocol": "style_bias", "limit": 2}},
        builds={"grown": {"builder": "lm_examiner", "options": {"domains": 1, "questions": 2, "retries": 0}}},
        roles=dict.fromkeys(("examiner", "evaluator", "writer", "stylist", "filter"), "e"),
        detection=None,
    )
    return do(folder, value)


def test_an_exam_by_a_model_has_its_tables_and_figures(run: Path) -> None:
    tables = {file.stem for file in (run / "report" / "tables").glob("*.csv")}
    wanted = {"exam_asked", "exam_asked_levels", "exam_asked_domains", "few_shot_gain_asked_shots", "built_lm_examiner"}
    assert wanted <= tables
    figures = {file.stem for file in (run / "report" / "figures").glob("*.svg")}
    assert {"radar.asked", "levels.asked", "domains.shots", "question_words"} <= figures
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "Gain by exemplars: asked, shots</h3>" in page


def transcripts(run: Path) -> list[list[dict[str, Any]]]:
    found = []
    for file in sorted((run / "report" / "transcripts").glob("page-*.js")):
        found += json.loads(file.read_text(encoding="utf-8").partition(",")[2].rpartition(")")[0])
    return found


def test_no_transcript_is_json(run: Path) -> None:
    blocks = [block for one in transcripts(run) for block in one]
    assert blocks
    assert [block for block in blocks if block["t"] == "data"] == []


def test_every_kind_can_be_read() -> None:
    kinds = [registry.protocol(name) for name in registry.PROTOCOLS]
    kinds += [registry.group_protocol(name) for name in registry.GROUPS]  # type: ignore[misc]
    kinds += [registry.builder(name) for name in registry.BUILDERS]  # type: ignore[misc]
    assert [kind.name for kind in kinds if getattr(kind, "shown", as_it_stands) is as_it_stands] == []


def test_records_are_read_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(file: Path) -> Any:
        read.append(f"{file.parent.name}/{file.name}")
        return read_jsonl(file)

    monkeypatch.setattr(present, "read_jsonl", counted)
    write_report(open_run(run), run / "report")
    assert sorted(read) == sorted(f"{exam}.{name}/records.jsonl" for exam in EXAMS for name in ("one", "two"))


def test_marks_stand_once_with_the_comment(run: Path) -> None:
    examined = [b for one in transcripts(run) for b in one if b["who"] == "examiner" and b["t"] == "verdict"]
    marks = [block for block in examined if "round" in block["n"]]
    assert marks
    assert [row[0] for row in marks[0]["rows"]] == list(MAXIMA)
    assert marks[0]["rows"][-1] == ["overall", MAXIMA["overall"], "Fine."]


def test_a_draft_by_hand() -> None:
    draft = {
        "strategy": "specific",
        "question": "Which fox?",
        "demand": "",
        "checks": [{"judge": {"safe": 1}}],
        "reference": {"answers": [{"role": "answerer_1", "text": "A red one.", "total": 9}], "chosen": 0},
        "passed": ["instruction"],
        "step": "",
        "reason": "",
    }
    shown = registry.builder("idgen").shown({"category": "science", "class": "general", "drafts": [draft]})  # type: ignore[attr-defined]
    assert [(block["who"], block.get("x"), block["n"]) for block in shown[1:]] == [
        ("generator", "Which fox?", "draft 1; specific"),
        ("judge", None, ""),
        ("answerer_1", "A red one.", "reference answer; 9 points; chosen"),
        ("end", "kept", "passed instruction"),
    ]


def test_who_turned_a_rewrite_down() -> None:
    attempts = [
        {"text": "a", "result": "code: new number", "reason": "the number 7 was not there before"},
        {"text": "b", "result": "judge", "reason": "another question"},
    ]
    stage = {"attempts": attempts, "status": "fallback", "reason": "", "stem": "What?"}
    record = {"set": 1, "benchmark": "arc", "question": {"p1": stage}, "choices": {}}
    shown = registry.builder("probing").shown(record)  # type: ignore[attr-defined]
    assert [(block["who"], block["x"]) for block in shown] == [
        ("set", "1"), ("prober", "a"), ("code", "new number"), ("prober", "b"), ("judge", "judge"), ("version", "What?")
    ]  # fmt: skip
