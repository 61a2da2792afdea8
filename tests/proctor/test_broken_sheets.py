"""Keys and folders of another command are refused in one sentence, not by a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.lm_examiner.people import check_references, measure_agreement, people_on_style
from proctor.commands import examiner, idgen
from proctor.run_folder.single import once
from serving.files import write_json, write_jsonl


def test_keys_of_another_export(tmp_path: Path) -> None:
    key, sheet = tmp_path / "key.jsonl", tmp_path / "sheet.csv"
    sheet.write_text("id,rating\nq0001,1\n", encoding="utf-8")
    for rows in ([{"id": "q0001", "kind": "usability", "item_id": "x"}], [{}], [[]], []):
        write_jsonl(key, rows)
        with pytest.raises(ValueError, match=r"key.jsonl is no key of 'proctor examiner sheet'"):
            measure_agreement(key, sheet, None, None, None, seed=0, out=tmp_path / "out", once=once)
    for kind, lacking in (("answers", "item_id"), ("references", "item_id"), ("usability", "item_id")):
        write_jsonl(key, [{"id": "q0001", "kind": kind}])
        with pytest.raises(ValueError, match=f"is no key of 'proctor idgen export': a row has no '{lacking}'"):
            idgen.import_(key=key, sheet=[sheet], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_of_another_build(tmp_path: Path) -> None:
    write_json(tmp_path / "metrics.json", {"funnel": {}})
    write_jsonl(tmp_path / "records.jsonl", [{"item_id": "x", "drafts": []}])
    write_jsonl(tmp_path / "items.jsonl", [{"id": "x", "question": "Why?"}])
    with pytest.raises(ValueError, match="the records are not of 'proctor build lm_examiner'"):
        check_references(tmp_path, tmp_path / "sheet.csv", number=1, seed=0)
    assert not (tmp_path / "sheet.csv").exists()
    with pytest.raises(ValueError, match="give a folder of 'proctor build lm_examiner'"):
        examiner.figures(out=tmp_path / "out", built=tmp_path)
    with pytest.raises(ValueError, match=r"items.jsonl: the rows are not items of 'proctor build'"):
        idgen.export(kind="usability", build=tmp_path, out=tmp_path / "out", annotator=["ann"])
    assert not (tmp_path / "out").exists()


def test_a_pair_judged_twice_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "metrics.json", {"all_pairs": {}, "kept": 0, "examiners": {}})
    write_jsonl(tmp_path / "records.jsonl", [{"item_id": "x", "comparisons": {}}])
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("item_id,same\nx,yes\nx,no\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"sheet.csv:3, column item_id: the item 'x' is repeated; it stands at .*sheet.csv:2"
    ):
        people_on_style(tmp_path, sheet, seed=0)
