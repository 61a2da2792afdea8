"""The stage ``detect`` with options, a reference model, files and set-level tests, on scripted models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation import benchmarks
from evaluation.formats import leak_text, neutral_text
from proctor.checks.experiment import preflight
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.run_folder.run import create, open_run
from proctor.runner.plan import find, plan, states
from proctor.stages.detect import examined, inputs_of
from tests.proctor.command import proctor, write_experiment
from tests.proctor.scripted import do, scripted


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def questions(folder: Path, name: str, n: int) -> str:
    rows = [
        {"question": f"{name}: what is {i} plus {i}?", "choices": [str(2 * i), "no number"], "answer": "A"}
        for i in range(n)
    ]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def small(folder: Path, *, pool: int = 0, limit: int = 12, **detection: Any) -> dict[str, Any]:
    """A scripted experiment without exams, with its own questions and, maybe, a pool of exemplars."""
    benchmark = {"format": "jsonl", "path": questions(folder, "exam", limit)}
    if pool:
        benchmark["exemplars"] = questions(folder, "pool", pool)
    return scripted(benchmark=benchmark, exams={}, detection={"methods": ["loss"], **detection})


def digest(folder: Path, value: dict[str, Any], stage: str = "detect.one") -> str:
    return find(plan(resolve(Experiment.model_validate(value))), stage).digest({"exam": "e"})


def test_a_whole_stage(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("exam: what is 3 plus 3?", encoding="utf-8")
    table = "".join(f"m{i},0.{i + 3},0.{i + 2},99,99\n" for i in range(6))
    own = "".join(f"{name},{accuracy},0.4,99,99\n" for name, accuracy in (("base", 0.5), ("one", 0.9), ("two", 0.5)))
    (tmp_path / "s.csv").write_text("model,accuracy,reference_accuracy,items,reference_items\n" + table + own)
    value = small(
        tmp_path,
        pool=20,
        methods=["loss", "recall", "reference"],
        set_tests=["loss_gap", "codec", "constat", "overlap"],
        options={"recall": {"shots": 5}, "constat": {"file": str(tmp_path / "s.csv"), "resamples": 100}},
        reference="q",
        corpus=str(tmp_path / "c.txt"),
        candidates=["one"],
    )
    run = do(tmp_path, value)
    for how in ("as_trained", "neutral"):
        folder = run / "stages" / "detect.one" / how
        records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
        assert set(records[0]["scores"]) >= {"loss", "recall", "reference", "recall/answer"}
        assert all(record["scores"]["recall"] is not None for record in records)
    figures = read(run / "stages" / "detect.one" / "set_tests.json")
    assert list(figures) == ["loss_gap", "codec", "constat", "overlap"]
    assert figures["constat"]["accuracy"] == 0.9  # the row of the candidate's own name
    assert figures["constat"]["n"] == 8
    assert read(run / "stages" / "detect.base" / "set_tests.json")["constat"]["accuracy"] == 0.5
    usage = read(run / "stages" / "detect.one" / "usage.json")
    assert usage["roles"]["reference"]["calls"] == 24
    summary = read(run / "report" / "summary.json")
    row = summary["candidates"]["one"]
    assert row["set_tests"]["constat"]["p_value"] == figures["constat"]["p_value"]
    assert "texts" not in row["set_tests"]["overlap"]
    # constat rejects, and alone it convicts nobody
    assert figures["constat"]["p_value"] < 0.02
    assert row["verdict"]["outcome"] == "inconclusive"
    current = states(open_run(run), plan(open_run(run).experiment))
    assert {state.state for state in current} == {"done"}


def test_the_exemplars_are_the_non_members_in_the_examined_format(tmp_path: Path) -> None:
    value = small(tmp_path, pool=3, methods=["recall"], options={"recall": {"shots": 3}})
    experiment = resolve(Experiment.model_validate(value))
    exam = preflight(experiment).exam
    pool = benchmarks.load("jsonl", tmp_path / "pool.jsonl")
    inputs = inputs_of(experiment, "one", experiment.models["m"])
    for how, spell in (("as_trained", leak_text), ("neutral", neutral_text)):
        found = examined(experiment, exam, how, inputs).context.non_members  # type: ignore[arg-type]
        assert sorted(found) == sorted(spell(item) for item in pool)


@pytest.mark.parametrize(
    ("detection", "message"),
    [
        ({"methods": ["recall"]}, "recall needs non members: name a file"),
        ({"methods": ["con_recall"]}, "con_recall needs"),
        ({"reference": "nobody"}, "detection.reference: 'nobody' is not an entry of models"),
        ({"methods": ["reference"]}, "reference needs reference model"),
        ({"set_tests": ["codexx"]}, "there is no set-level test 'codexx'; did you mean 'codec'"),
        ({"options": {"losss": {}}}, "there is no detection method 'losss'; did you mean 'loss'"),
        ({"options": {"codec": {"shot": 1}}, "set_tests": ["codec"]}, r"codec.shot: .*; its options: shots"),
        ({"set_tests": ["overlap"], "corpus": "/nowhere"}, "/nowhere does not exist"),
        ({"non_members": "/nowhere"}, "/nowhere"),
        ({"long_texts": "cut"}, "long_texts"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    tmp_path: Path, detection: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        preflight(resolve(Experiment.model_validate(small(tmp_path, **detection))))


def test_a_served_candidate_has_no_full_vocabulary(tmp_path: Path, tiny_model: Path) -> None:
    value = small(tmp_path, methods=["loss", "min_k_plus_plus"])
    value["models"] = {**value["models"], "far": {"path": str(tiny_model), "engine": "server"}}
    value["candidates"] = {"one": {"model": "m"}, "away": {"model": "far"}}
    with pytest.raises(ValueError, match=r"min_k_plus_plus needs .* a server .*detection\.candidates"):
        preflight(resolve(Experiment.model_validate(value)))
    value["detection"] = {**value["detection"], "candidates": ["one"]}
    names = [stage.name for stage in preflight(resolve(Experiment.model_validate(value))).stages]
    assert "detect.one" in names
    assert "detect.away" not in names


def test_a_pool_that_is_too_small_is_refused(tmp_path: Path) -> None:
    value = small(tmp_path, pool=3, methods=["recall"])
    result = proctor("run", write_experiment(tmp_path, value), "--out", tmp_path / "run")
    assert (result.returncode, (tmp_path / "run").exists()) == (2, False)
    assert "12 non-members, and 3" in result.stderr


def test_known_texts_must_not_be_items(tmp_path: Path) -> None:
    value = small(tmp_path)
    item = benchmarks.load("jsonl", tmp_path / "exam.jsonl")[0]
    known = tmp_path / "known.jsonl"
    known.write_text(json.dumps({"text": neutral_text(item)}) + "\n", encoding="utf-8")
    for key in ("non_members", "members"):
        value["detection"] = {"methods": ["loss"], key: str(known)}
        with pytest.raises(ValueError, match=r"known.jsonl: a known (non-)?member is under examination, too"):
            preflight(resolve(Experiment.model_validate(value)))


def test_files_and_options_are_part_of_the_digest_and_places_are_not(tmp_path: Path) -> None:
    corpus, known = tmp_path / "c.txt", tmp_path / "k.jsonl"
    corpus.write_text("a b c", encoding="utf-8")
    known.write_text('{"text": "known"}\n', encoding="utf-8")
    value = small(
        tmp_path, set_tests=["overlap", "loss_gap"], corpus=str(corpus), non_members=str(known),
        options={"loss_gap": {"reference": str(known)}},
    )  # fmt: skip
    before = digest(tmp_path, value)
    moved = tmp_path / "elsewhere.txt"
    corpus.rename(moved)
    value["detection"]["corpus"] = str(moved)
    assert digest(tmp_path, value) == before
    seen = {before}
    for key, change in {
        "options": {"loss_gap": {"reference": str(known)}, "overlap": {"threshold": 0.5}},
        "reference": "q",
        "benchmark_name": "ARC",
        "long_texts": "window",
        "set_tests": ["overlap"],
        "methods": ["zlib"],
    }.items():
        seen.add(digest(tmp_path, {**value, "detection": {**value["detection"], key: change}}))
    assert len(seen) == 7
    for file in (moved, known):
        with file.open("a", encoding="utf-8") as stream:
            stream.write('{"text": "more"}\n')
        seen.add(digest(tmp_path, value))
    assert len(seen) == 9
    # options of a method that is not chosen change nothing
    value["detection"]["options"]["recall"] = {"shots": 2}
    assert digest(tmp_path, value) in seen


def test_files_are_absolute_in_the_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.txt").write_text("a b c", encoding="utf-8")
    Path("k.jsonl").write_text('{"text": "known"}\n', encoding="utf-8")
    value = small(
        tmp_path, corpus="c.txt", members="k.jsonl", set_tests=["loss_gap"], options={"loss_gap": {"train": "k.jsonl"}}
    )
    run = create(tmp_path / "run", resolve(Experiment.model_validate(value)))
    config = run.experiment.detection
    assert config is not None
    assert (config.corpus, config.members) == (str(tmp_path / "c.txt"), str(tmp_path / "k.jsonl"))
    assert config.options == {"loss_gap": {"train": str(tmp_path / "k.jsonl")}}
