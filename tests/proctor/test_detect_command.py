"""``proctor detect``: what it is given, what it writes, what it refuses."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.commands import detect as adhoc
from tests.proctor.command import proctor, start

Write = Callable[[str, str], Path]


def lines(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def texts(n: int, *, label: Callable[[int], int | None] = lambda i: i % 2, word: str = "text") -> str:
    rows = [{"text": f"{word} number {i} says {i * i} and {i % 7} more", "label": label(i)} for i in range(n)]
    return lines(rows)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def run(out: Path, data: Path, **settings: Any) -> None:
    adhoc.detect(**{"model": "x", "engine": "scripted", "methods": "loss", "data": data, "out": out, **settings})


def test_set_tests_and_options(tmp_path: Path, write_text: Write, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_text("t.jsonl", texts(40))
    new = write_text("new.jsonl", texts(10, label=lambda i: None, word="new"))
    corpus = write_text("c.txt", "text number 3 says 9 and 3 more")
    out = tmp_path / "out"
    options = [f"loss_gap.reference={new}", "exchangeability.shards=4", "exchangeability.permutations=3"]
    settings = {"set_tests": "loss_gap,exchangeability,codec,overlap", "option": options, "corpus": corpus}
    run(out, data, **settings)
    figures = read(out / "set_tests.json")
    assert list(figures) == ["loss_gap", "exchangeability", "codec", "overlap"]
    assert figures["loss_gap"]["n_reference"] == 10
    assert isinstance(figures["loss_gap"]["D1"], float)
    assert (figures["exchangeability"]["shards"], figures["exchangeability"]["permutations"]) == (4, 3)
    assert figures["codec"]["test"] == "fisher"
    assert figures["overlap"]["share"] == 1 / 40
    assert figures["overlap"]["p_value"] is figures["overlap"]["p_value_adjusted"] is None
    assert figures["loss_gap"]["p_value_adjusted"] >= figures["loss_gap"]["p_value"]
    printed = capsys.readouterr().out
    assert "set: codec" in printed
    run(out, data, **settings)
    assert "nothing to do" in capsys.readouterr().out
    # the file of an option counts by its content, wherever it lies
    moved = new.rename(tmp_path / "moved.jsonl")
    options[0] = f"loss_gap.reference={moved}"
    run(out, data, **settings)
    assert "nothing to do" in capsys.readouterr().out
    moved.write_text(texts(11, word="other"), encoding="utf-8")
    with pytest.raises(ValueError, match="other inputs"):
        run(out, data, **settings)


def test_a_verdict_needs_a_control(tmp_path: Path, write_text: Write, capsys: pytest.CaptureFixture[str]) -> None:
    # scripted scores depend on the words alone: model and control are alike, so nothing is gained
    data = write_text("t.jsonl", texts(40))
    run(tmp_path / "alone", data)
    assert read(tmp_path / "alone" / "verdict.json")["findings"][0]["gain"] is None
    run(tmp_path / "out", data, control="other")
    found = read(tmp_path / "out" / "verdict.json")
    assert found["outcome"] != "contaminated"
    assert (tmp_path / "out" / "control" / "records.jsonl").is_file()
    assert isinstance(found["findings"][0]["gain"]["value"], float)
    assert found["blind_baseline"]["n"] == 40
    assert f"verdict: {found['outcome']}" in capsys.readouterr().out
    unlabelled = write_text("u.jsonl", texts(5, label=lambda i: None))
    run(tmp_path / "unlabelled", unlabelled, control="other")
    assert read(tmp_path / "unlabelled" / "verdict.json")["outcome"] == "inconclusive"


@pytest.mark.parametrize(
    "change",
    [
        {"option": ["recall.shots=3"]},
        {"long_texts": "window"},
        {"benchmark_name": "ARC"},
        {"reference": "another"},
        {"set_tests": "loss_gap"},
    ],
)
def test_every_input_counts(tmp_path: Path, write_text: Write, change: dict[str, Any]) -> None:
    known = write_text("n.jsonl", texts(20, label=lambda i: 0, word="known"))
    settings = {"methods": "loss,recall,reference", "non_members": known, "reference": "other"}
    run(tmp_path / "out", write_text("t.jsonl", texts(6)), **settings)
    with pytest.raises(ValueError, match="other inputs"):
        run(tmp_path / "out", tmp_path / "t.jsonl", **{**settings, **change})


def test_unlabelled_texts_against_known_non_members(
    tmp_path: Path, write_text: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_text("t.jsonl", texts(5, label=lambda i: None))
    known = write_text("n.jsonl", texts(19, label=lambda i: None, word="known"))
    out = tmp_path / "out"
    run(out, data, methods="loss,reference", non_members=known, reference="other")
    rows = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    assert all(0 < row["conformal"]["loss"] <= 1 for row in rows)
    metrics = read(out / "metrics.json")
    assert metrics["loss"]["auc"] is None
    assert metrics["loss"]["conformal"]["n_reference"] == 19
    assert metrics["reference"]["mean"] == 0.0  # two scripted models score alike
    assert len((out / "non_members.jsonl").read_text().splitlines()) == 19
    printed = capsys.readouterr().out
    assert "no AUC: no labelled text with a score" in printed
    assert "unlike 19 known non-members" in printed
    usage = read(out / "usage.json")
    assert usage["roles"]["candidate"]["calls"] == usage["roles"]["reference"]["calls"] == 24
    assert usage["roles"]["candidate"]["prompt_tokens"] == 24 * 7  # eight words each, the first has no prediction
    assert usage["long_texts"] == {"policy": "truncate", "texts": 0, "overlong_tokens": 0, "dropped_tokens": 0}


def test_labelled_texts_need_no_scores_of_known_ones(tmp_path: Path, write_text: Write) -> None:
    known = write_text("n.jsonl", texts(19, label=lambda i: 0, word="known"))
    run(tmp_path / "out", write_text("t.jsonl", texts(6)), non_members=known)
    assert not (tmp_path / "out" / "non_members.jsonl").exists()
    assert read(tmp_path / "out" / "usage.json")["roles"]["candidate"]["calls"] == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": "loss,min_q"}, "there is no detection method 'min_q'; did you mean 'min_k'"),
        ({"set_tests": "codex"}, "there is no set-level test 'codex'; did you mean 'codec'"),
        ({"methods": "recall"}, "recall needs non members: name a file .* --non-members FILE"),
        ({"methods": "reference"}, "reference needs reference model: name one with --reference"),
        ({"set_tests": "overlap"}, "overlap needs corpus: name one with --corpus"),
        ({"set_tests": "constat"}, "constat.file: Field required"),
        ({"option": ["recall.shots=3"]}, "-o recall.shots=...: 'recall' is not chosen; chosen: loss"),
        ({"option": ["shots=3"]}, "-o shots=...: say of which method"),
        ({"methods": "pac", "option": ["pac.copys=3"]}, "pac.copys: .*; its options: copies"),
        ({"methods": "neighbour", "option": ["neighbour.copies=many"]}, "neighbour.copies: .*'many'"),
        ({"long_texts": "drop"}, "--long-texts is 'drop'; it must be one of truncate, window"),
        ({"corpus": Path("/nowhere"), "set_tests": "overlap"}, "/nowhere does not exist"),
        ({"non_members": Path("/nowhere")}, "/nowhere: can't be read"),
        ({"set_tests": "loss_gap", "option": ["loss_gap.train=/nowhere"]}, "/nowhere: can't be read"),
        ({"methods": ""}, "no detection method chosen"),
    ],
)
def test_what_is_missing_or_wrong_is_said_before_anything_is_written(
    tmp_path: Path, write_text: Write, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "out", write_text("t.jsonl", texts(6)), **settings)
    assert not (tmp_path / "out").exists()


def test_known_texts_must_be_known_and_stand_apart(tmp_path: Path, write_text: Write) -> None:
    data = write_text("t.jsonl", texts(6))
    wrong = write_text("n.jsonl", '{"text": "a b", "label": 1, "id": "q"}\n')
    with pytest.raises(ValueError, match=r"n.jsonl: text 'q' has label 1, but this is the file of non-members"):
        run(tmp_path / "out", data, non_members=wrong)
    with pytest.raises(ValueError, match=r"t2.jsonl: a known member is under examination, too \(text '1'\)"):
        run(tmp_path / "out", data, members=write_text("t2.jsonl", texts(1, label=lambda i: 1)))
    broken = tmp_path / "b.jsonl"
    broken.write_bytes(b'{"text": "a"}\n{"text": "\xff"}\n')
    for key in ("non_members", "members"):
        with pytest.raises(ValueError, match=r"b.jsonl:2: byte 11 of the line is not UTF-8"):
            run(tmp_path / "out", data, **{key: broken})
    with pytest.raises(ValueError, match=r"b.jsonl:2: byte 11 of the line is not UTF-8"):
        run(tmp_path / "out", broken)
    assert not (tmp_path / "out").exists()


def test_a_method_that_the_engine_cannot_serve(
    tmp_path: Path, tiny_model: Path, write_text: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generations come from the engine that is named; the full vocabulary always from transformers, so all of these
    can be served there, whatever the engine."""
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "vllm" else found(name, *rest))
    data = write_text("t.jsonl", texts(6))
    with pytest.raises(ValueError, match="cdd needs generations, and the engine vllm is not installed; use the engine"):
        run(tmp_path / "out", data, model=str(tiny_model), engine="vllm", methods="loss,cdd")
    assert not (tmp_path / "out").exists()
    run(tmp_path / "out", data, model=str(tiny_model), engine="vllm", methods="min_k_plus_plus")
    assert read(tmp_path / "out" / "metrics.json")["min_k_plus_plus@20"]["n"] == 6


def test_three_texts_of_0_1_and_more_tokens(tmp_path: Path, tiny_model: Path, write_text: Write) -> None:
    data = write_text("t.jsonl", lines([{"text": ""}, {"text": "a"}, {"text": "A longer text of several words."}]))
    out = tmp_path / "out"
    methods = "loss,zlib,min_k,min_k_plus_plus,lowercase,pac"
    tests = {"set_tests": "loss_gap,exchangeability,codec", "option": ["exchangeability.permutations=2"]}
    run(out, data, model=str(tiny_model), engine="transformers", methods=methods, **tests)
    rows = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    assert set(rows[0]["scores"].values()) == {None}
    assert rows[2]["scores"]["loss"] < 0
    metrics = read(out / "metrics.json")
    assert metrics["loss"]["n_unscorable"] in (1, 2)  # the one-token text has a prediction where there is a BOS
    assert metrics["loss"]["reason"] == "no labelled text with a score"
    figures = read(out / "set_tests.json")
    assert all(row["p_value"] is None and row["reason"] for row in figures.values())
    usage = read(out / "usage.json")["roles"]["candidate"]
    assert 0 < usage["computed_tokens"] <= usage["prompt_tokens"]


@pytest.mark.parametrize("policy", ["truncate", "window"])
def test_texts_longer_than_the_context(
    tmp_path: Path, write_text: Write, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.fixtures.tiny import make_model

    model = make_model(tmp_path / "short", context=48)
    words = " ".join(f"word{i}" for i in range(60))
    data = write_text("t.jsonl", lines([{"text": words, "label": 1}, {"text": "a b c", "label": 0}]))
    run(tmp_path / "out", data, model=str(model), engine="transformers", long_texts=policy)
    long, short = (json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines())
    assert long["overlong"] > 0
    assert short["overlong"] == short["dropped"] == 0
    assert long["dropped"] == (long["overlong"] if policy == "truncate" else 0)
    assert long["tokens"] == (47 if policy == "truncate" else 47 + long["overlong"])
    counts = read(tmp_path / "out" / "usage.json")["long_texts"]
    assert (counts["texts"], counts["dropped_tokens"]) == (1, long["dropped"])
    assert "1 texts longer than the context: " in capsys.readouterr().out


def keys(folder: Path) -> list[str]:
    """Every request in a ledger, in the order of its answers."""
    found: list[str] = []
    for segment in sorted(folder.glob("*.jsonl"), key=lambda path: path.name.rpartition("-")[2]):
        for raw in segment.read_bytes().splitlines(keepends=True):
            if raw.endswith(b"\n"):
                found += json.loads(raw.partition(b" ")[2]).get("keys", [])
    return found


def test_a_killed_audit_goes_on_and_scores_no_text_twice(tmp_path: Path, write_text: Write) -> None:
    data = write_text("t.jsonl", texts(6_000))
    common = ("detect", "--model", "x", "--engine", "scripted", "--data", data, "--methods", "loss,min_k_plus_plus")
    common += ("--set-tests", "codec")
    ledger = tmp_path / "out" / "ledger"
    process = start(*common, "--out", tmp_path / "out")
    deadline = time.monotonic() + 60
    while len(keys(ledger)) < 1000 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = keys(ledger)
    assert 1000 <= len(before) < 6_000
    assert not (tmp_path / "out" / "DONE").exists()
    result = proctor(*common, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    after = keys(ledger)
    assert len(after) == len(set(after))
    assert after[: len(before)] == before
    usage = read(tmp_path / "out" / "usage.json")["roles"]["candidate"]
    assert usage["replayed"] == len(before)
    whole = proctor(*common, "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    for name in ("records.jsonl", "scores.jsonl", "metrics.json", "set_tests.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_list_says_needs_cost_and_paper() -> None:
    from detection import detectors, sets
    from proctor.commands.list import LISTS

    found = list(LISTS["detectors"]())
    assert [line.split()[0] for line in found] == [*detectors.names(), *sets.names()]
    for line in found:
        assert "needs: " in line
        assert "forward passes per text: " in line
        assert any(year in line for year in map(str, range(2004, 2027)))
    assert sum("set-level test" in line for line in found) == len(sets.names())


def test_the_documentation_names_every_test_and_every_flag() -> None:
    import inspect

    from detection import sets
    from proctor.experiment.sections import DetectionConfig

    text = (Path(__file__).parents[2] / "docs" / "set_tests.md").read_text(encoding="utf-8")
    for name in sets.names():
        assert f"| `{name}` |" in text
    flags = set(inspect.signature(adhoc.detect).parameters) - {"model", "data", "out", "option", "seed", "dtype"}
    for name in flags:
        assert f"`--{name.replace('_', '-')}" in text, name
    for key in set(DetectionConfig.model_fields) - {"formats", "candidates", "options"}:
        assert f"`{key}`" in text, key


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": "loss,guided"}, "guided needs the benchmark's name: give --benchmark-name"),
        ({"methods": "loss", "set_tests": "guided_set"}, "guided_set reads the scores of guided; choose guided"),
    ],
)
def test_what_could_give_no_score_is_refused(
    tmp_path: Path, write_text: Write, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "out", write_text("t.jsonl", texts(4)), **settings)
    assert not (tmp_path / "out").exists()


def test_too_few_known_non_members_flag_nobody(
    tmp_path: Path, write_text: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_text("t.jsonl", texts(5, label=lambda i: None))
    few = write_text("few.jsonl", texts(18, label=lambda i: None, word="new"))
    run(tmp_path / "few", data, non_members=few)
    assert "18 known non-members are too few to flag a text (19 could)" in capsys.readouterr().out
    enough = write_text("enough.jsonl", texts(19, label=lambda i: None, word="new"))
    run(tmp_path / "enough", data, non_members=enough)
    assert "of 5 unlike 19 known non-members" in capsys.readouterr().out


def test_a_prompt_of_a_method_is_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    from detection.inputs import Inputs
    from evaluation import templates
    from serving.model.spec import ModelSpec

    inputs = Inputs(methods=("guided", "quiz", "ts_guessing"), model=ModelSpec(path="x", engine="scripted"), seed=0)
    prompts = inputs.identity()["prompts"]
    assert set(prompts) == {"guided.jinja", "quiz.jinja", "ts_guessing.jinja"}
    monkeypatch.setattr(templates, "prompt_hash", lambda name, package: "another")
    assert set(inputs.identity()["prompts"].values()) == {"another"}
