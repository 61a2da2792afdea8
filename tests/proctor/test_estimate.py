"""Estimates against what a run measures: scripted models, whose calls and tokens are known, and a small real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.checks.estimate import Figures, StageEstimate, _scaled, estimate, measured, table, total
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.run_folder.run import open_run
from serving.files import read_json
from tests.proctor.command import proctor, write_experiment
from tests.proctor.scripted import do, scripted


def load(value: dict[str, Any]) -> Experiment:
    return resolve(Experiment.model_validate(value))


def test_calls_of_a_scripted_run_are_exact(tmp_path: Path) -> None:
    value = scripted()
    run = open_run(do(tmp_path, value))
    before, after = estimate(load(value), items=None), measured(run)
    assert before.keys() == after.keys() >= {"static.one", "kieval.two", "detect.base", "detect.one"}
    for name, stage in before.items():
        assert {role: f.calls for role, f in stage.roles.items()} == {r: f.calls for r, f in after[name].roles.items()}
    assert before["static.one"].roles["candidate"].calls == 48, "four options of twelve items"
    assert total(before).calls == total(after).calls
    assert total(before).prompt_tokens is None
    assert all(stage.peak_memory for stage in after.values())


def test_a_sample_is_scaled() -> None:
    row = {"calls": 3, "prompt_tokens": 300, "output_tokens": 30, "seconds": 6.0, "loading": 4.0}
    sample = {"roles": {"judge": row}, "seconds": 12.0, "peak_memory_gib": 1.5}
    # the rehearsal made 4 calls where the sample made 3 (it stopped early), and the whole stage makes at most 40
    stage = _scaled({"judge": 40}, {"judge": 4}, sample)
    assert stage.roles == {"judge": Figures(calls=40, expected=30, prompt_tokens=3000, output_tokens=300, seconds=60.0)}
    assert stage.seconds == 2.0 + 4.0 + 60.0
    assert stage.peak_memory == 1.5
    assert _scaled({"judge": 0}, {"judge": 0}, sample).roles["judge"].seconds == 0.0


def test_dialogues_that_end_early_in_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    """At most 40, but 30 if a quarter is not asked, as in the sample; retries may also make it more."""
    row = {"calls": 3, "prompt_tokens": 300, "output_tokens": 30, "seconds": 6.0, "loading": 4.0}
    table({"kieval.a": _scaled({"judge": 40}, {"judge": 4}, {"roles": {"judge": row}, "seconds": 12.0})})
    lines = capsys.readouterr().out.splitlines()
    assert "<= 40, 30 " in lines[1]
    assert lines[2].startswith("total")
    assert "<= 40, 30 " in lines[2]


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    one = StageEstimate(
        roles={"candidate": Figures(calls=2, prompt_tokens=1500, output_tokens=3, seconds=2)}, seconds=9
    )
    table({"static.a": one, "static.b": one}, {"static.a": one})
    lines = capsys.readouterr().out.splitlines()
    assert "2 / 2" in lines[1]
    assert "1,500 / 1,500" in lines[1]
    assert "2 / -" in lines[2]
    assert lines[3].split()[:4] == ["total", "2", "/", "2"], "only what was measured is compared"
    assert lines[4:] == ["static.a: whole stage: 9 s (measured 9 s)", "static.b: whole stage: 9 s"]


def test_a_real_model(tiny_model: Path, tmp_path: Path) -> None:
    """Tokens of a sample against the whole: questions of the embedded exam are of similar length."""
    spec = {"path": str(tiny_model), "engine": "transformers", "dtype": "float32", "max_num_seqs": 32}
    value = scripted(
        models={"m": spec},
        candidates={"one": {"model": "m"}},
        roles={},
        benchmark={"format": "embedded", "limit": 40},
        exams={"static": {"protocol": "static", "options": {"mode": "letter"}}},
        detection={"formats": ["as_trained"], "methods": ["loss"]},
    )
    file = write_experiment(tmp_path, value)
    assert proctor("run", file, "--out", tmp_path / "run").returncode == 0
    said = proctor("estimate", file, "--items", 8, "--run", tmp_path / "run", "--out", tmp_path / "estimate.json")
    assert said.returncode == 0, said.stderr
    assert "whole stage: " in said.stdout
    before, after = read_json(tmp_path / "estimate.json"), measured(open_run(tmp_path / "run"))
    for name in ("static.one", "detect.one"):
        ours, theirs = before[name]["roles"]["candidate"], after[name].roles["candidate"]
        assert ours["calls"] == theirs.calls
        assert theirs.prompt_tokens is not None
        assert ours["prompt_tokens"] == pytest.approx(theirs.prompt_tokens, rel=0.2)


def built(**changes: Any) -> dict[str, Any]:
    """Two builds by one model, an exam on each."""
    lm = {"builder": "lm_examiner", "options": {"domains": 2, "questions": 3}}
    options = {"classes": "general", "per_seed": 2, "answerers": 1, "critic": True}
    grown = {
        "builder": "idgen",
        "limit": 2,
        "roles": dict.fromkeys(("generator", "critic", "judge", "answerer_1"), "q"),
        "options": options,
    }
    generate = {"protocol": "static", "options": {"mode": "generate"}}
    value = scripted(
        roles={"examiner": "m", "evaluator": "m"},
        candidates={"one": {"model": "m"}},
        builds={"written": lm, "grown": grown},
        exams={"w": {**generate, "build": "written"}, "g": {"protocol": "idgen", "build": "grown"}},
        detection=None,
        max_failure_rate=1.0,
    )
    return {**value, **changes}


def test_calls_of_builds_are_counted_as_if_every_first_reply_could_be_used() -> None:
    before = estimate(load(built()), items=None)
    calls = {name: {role: f.calls for role, f in stage.roles.items()} for name, stage in before.items()}
    # two domains, each 1 demand for three questions, 3 answers of its own, 3 levels: 14; an exam of six
    assert calls["build.written"] == {"examiner": 14}
    assert calls["w.one"] == {"candidate": 6}
    # two seeds of each half, 4: a category each; per seed two drafts: a question, its rewrite after the critic, a text
    # and a question out of it: 4 + 8 x 4 = 36. The critic speaks once, the judge on usability and on the reference.
    assert calls["build.grown"] == {"generator": 36, "critic": 8, "judge": 16, "answerer_1": 8}
    assert calls["g.one"] == {"candidate": 8, "evaluator": 8}


def test_a_sample_whose_build_makes_no_item_leaves_calls() -> None:
    """The scripted model's text is no question: the build asks four times in vain, and nobody sits its exam."""
    value = built()
    del value["builds"]["grown"], value["exams"]["g"]
    found = estimate(load(value), items=2)
    written = found["build.written"]
    assert written.seconds is not None
    assert written.roles["examiner"].calls == 14
    assert written.roles["examiner"].prompt_tokens
    assert found["w.one"] == StageEstimate(roles={"candidate": Figures(calls=6)})
    assert total(found).prompt_tokens is None
