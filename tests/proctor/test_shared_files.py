"""What people share and what reaches a terminal: experiments that read the environment, YAML that grows, escapes."""

from __future__ import annotations

import itertools
import json
import os
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from evaluation.show.terminal_text import LONGEST, harmless
from proctor.cli import app
from proctor.experiment.load import load_experiment
from proctor.experiment.yaml_file import read_yaml
from proctor.report.write import write_report
from proctor.run_folder.run import create, open_run
from proctor.runner.one_stage import do_stage
from tests.proctor.command import proctor, write_experiment
from tests.proctor.scripted import scripted

SECRET = "s3cr3t-0f-n0b0dy"


def with_secret(folder: Path) -> Path:
    value = scripted(exams={"static": {"protocol": "static"}}, benchmark={"format": "embedded", "limit": 4})
    value["models"] |= {"k": {"path": "a/${oc.env:KEY}", "engine": "scripted"}, "short": "${oc.env:KEY}"}
    value["models"]["again"] = {"path": "${models.k.path}", "engine": "scripted"}
    value["seed"] = "${oc.env:SEED}"
    value["max_failure_rate"] = "${oc.env:RATE,0.25}"
    return write_experiment(folder, value)


def test_a_secret_stays_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", SECRET)
    monkeypatch.setenv("SEED", "7")
    loaded = load_experiment(with_secret(tmp_path))
    assert (loaded.models["k"].path, loaded.seed, loaded.max_failure_rate) == (f"a/{SECRET}", 7, 0.25)
    run = create(tmp_path / "run", loaded)
    text = (run.path / "experiment.yaml").read_text(encoding="utf-8")
    assert SECRET not in text
    written = yaml.safe_load(text)
    assert written["models"]["k"]["path"] == "a/${oc.env:KEY}"
    assert written["models"]["short"]["path"] == "${oc.env:KEY}"
    assert written["models"]["again"]["path"] == "a/${oc.env:KEY}"
    assert (written["seed"], written["max_failure_rate"]) == ("${oc.env:SEED}", 0.25)
    # whoever does a stage reads the variables again
    opened = open_run(run.path)
    assert (opened.experiment.models["k"].path, opened.experiment.seed) == (f"a/{SECRET}", 7)
    assert opened.experiment.model_dump() == run.experiment.model_dump()
    create(run.path, opened.experiment)
    assert (run.path / "experiment.yaml").read_text(encoding="utf-8") == text
    do_stage(opened, "exam")
    write_report(opened, run.path / "report")
    files = [file for file in run.path.rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    page = (run.path / "report" / "index.html").read_text(encoding="utf-8")
    assert "Environment variables read: KEY, SEED." in page
    monkeypatch.delenv("KEY")
    with pytest.raises(ValueError, match="reads the environment variables KEY, which are not set"):
        open_run(run.path)


def test_the_variables_that_are_read_are_named(tmp_path: Path) -> None:
    result = CliRunner(env={"KEY": SECRET, "SEED": "7"}).invoke(app, ["run", str(with_secret(tmp_path)), "--dry-run"])
    assert "environment variables read: KEY, SEED\n" in result.output
    assert SECRET not in result.output


def chain(first: str, line: str, names: str) -> str:
    """Lines that each insert the one before."""
    made = itertools.pairwise(names)
    return first + "".join(line.format(a=above, b=name, r=f"${{{above}}}") for above, name in made)


GROWING = {
    "interpolations": chain("a: " + "x" * 100 + "\n", "{b}: '{r}{r}{r}{r}{r}{r}{r}{r}{r}{r}'\n", "abcdefghij"),
    "subtrees": chain("a: {x: 1}\n", "{b}: {{x: '{r}', y: '{r}', z: '{r}'}}\n", "abcdefghijklmnopqrs"),
    "anchors": chain("a: &a [x, x]\n", "{b}: &{b} [*{a}, *{a}, *{a}, *{a}]\n", "abcdefghijk"),
    "anchors in a circle": "a: &a [*a]\n",
    "a long file": "a: " + "x" * 3_000_000,
}


@pytest.mark.parametrize("kind", GROWING)
def test_yaml_that_grows_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "growing.yaml"
    file.write_text(GROWING[kind], encoding="utf-8")
    begin = time.monotonic()
    with pytest.raises(ValueError, match=r"growing.yaml: .*(grow to more|anchors|characters)"):
        read_yaml(file)
    assert time.monotonic() - begin < 10


def test_an_ordinary_file_with_many_interpolations_is_read(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    models = "".join(f"  m{i}: {{path: '${{root}}/${{name}}/{i}', again: '${{.path}}'}}\n" for i in range(200))
    file.write_text(f"root: /data\nname: x\npick: m1\nmodels:\n{models}one: ${{models.${{pick}}.again}}\n", "utf-8")
    found = read_yaml(file)
    assert found.value["one"] == "/data/x/1"
    assert found.references == ()


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r\x08\ud800"


def test_nothing_of_a_text_moves_the_cursor() -> None:
    assert harmless(ESCAPES) == "\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\u202eevil\\r\\x08\\ud800"
    assert harmless("two\nlines\tand 数学 é") == "two\nlines\tand 数学 é"
    assert harmless("x" * (LONGEST + 5)).endswith("x [... 5 more characters]")


def test_escapes_of_files_do_not_reach_the_terminal(tmp_path: Path) -> None:
    name = "odd\x1b[2J\x1b]0;owned\x07"
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps({"model_type": ESCAPES}), encoding="utf-8")
    result = proctor("models", "inspect", tmp_path / name)
    assert (result.returncode, "\x1b" in result.stderr, "\\x1b[2J" in result.stderr) == (2, False, True)
    bench = tmp_path / "bench.jsonl"
    bench.write_text(json.dumps({"question": "q", "choices": ["a", "b"], "answer": "\x1b[31m"}), encoding="utf-8")
    value = scripted(benchmark={"format": "jsonl", "path": str(bench)})
    result = proctor("run", write_experiment(tmp_path, value), "--out", tmp_path / "run")
    assert (result.returncode, "\x1b" in result.stderr + result.stdout) == (2, False)


def test_escapes_of_logs_do_not_reach_the_terminal(tmp_path: Path) -> None:
    value = scripted(exams={"static": {"protocol": "static"}}, benchmark={"format": "embedded", "limit": 4})
    run = create(tmp_path / "run", load_experiment(write_experiment(tmp_path, value)))
    stage = run.stage("exam")
    stage.path.mkdir()
    stage.progress(1, 2, f"note {ESCAPES[:-1]}")
    (stage.path / "log.txt").write_text(f"error: {ESCAPES[:-1]}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["status", str(run.path)])
    assert "interrupted" in result.output
    assert not set(result.output) & set("\x1b\x07\x9b\u202e\x08")


def test_a_long_question_is_shown_short(tmp_path: Path) -> None:
    bench = tmp_path / "bench.jsonl"
    row = {"question": "x" * 2_000_000, "choices": ["a", "b"], "answer": "A"}
    bench.write_text(json.dumps(row), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", "--format", "jsonl", "--benchmark", str(bench)])
    assert result.exit_code == 0, result.output
    assert "more characters]" in result.output
    assert len(result.output) < 200_000


def test_a_matplotlibrc_changes_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    from evaluation.show.plate import look, save
    from evaluation.show.win_rates import win_rates as plate

    def drawn(folder: Path) -> bytes:
        with look():
            save(plate(["a", "b"], [[None, 0.75], [0.25, None]], ""), folder)
        return (folder / "win_rates.svg").read_bytes()

    before = drawn(tmp_path / "before")
    assert b"data:image" not in before  # the page's policy would not load it
    with matplotlib.rc_context({"font.size": 40, "axes.facecolor": "red", "image.cmap": "hot"}):
        assert drawn(tmp_path / "after") == before
        assert matplotlib.rcParams["font.size"] == 40


def test_check_reads_weights_again(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from serving.model.fingerprint import file_hash, weights_hash

    monkeypatch.setattr("serving.model.hashes.SETTLED_S", -60.0)
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    model = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    weights = model / "model.safetensors"
    former, stat, data = weights_hash(model), weights.stat(), bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as tar, wheels and cp -p leave it
    assert weights.stat().st_size == stat.st_size
    assert weights_hash(model) != former
    # what no attribute tells: only --rehash does
    true = file_hash(weights)
    (entry,) = (f for f in (tmp_path / "cache" / "hashes").iterdir() if f.read_text() == true)
    entry.write_text("0" * 64, encoding="ascii")
    value = scripted(exams={"static": {"protocol": "static"}}, candidates={"one": {"model": "t"}})
    value["models"]["t"] = {"path": str(model), "engine": "transformers"}
    file = write_experiment(tmp_path, value)
    result = CliRunner().invoke(app, ["check", str(file), "--no-self-test", "--rehash"])
    assert result.exit_code == 0, result.output
    assert f"warning: {weights} has other content than its cached hash" in result.output
    assert file_hash(weights) == true
    result = CliRunner().invoke(app, ["check", str(file), "--no-self-test", "--rehash"])
    assert ", 0 not as they were hashed before" in result.output
