"""Exams that models write: the command, the stage, and exams that sit what was built."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import Field

from evaluation import registry as builders
from evaluation.exam_set import read_exam
from evaluation.items import Item, make_item
from evaluation.protocol import Built, ProtocolOptions, Record
from proctor.checks.experiment import preflight
from proctor.cli import app
from proctor.commands.build import playing
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.runner.plan import find, plan
from serving.files import read_json, read_jsonl
from serving.records import Ask, Dialogue, Message, Sampling
from tests.proctor.scripted import do, scripted


class EchoOptions(ProtocolOptions):
    keep: int = Field(default=99, ge=0)


class Echo:
    """Asks for a rewrite of each question and keeps the first ``keep`` of them; set ``again`` has them all."""

    name = "echo"
    version = 1
    seeds = True
    Options = EchoOptions
    roles = ("writer",)

    def __init__(self, options: EchoOptions, *, seed: int) -> None:
        self.options = options

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        for item in items:
            yield self._one(item)

    def _one(self, item: Item) -> Dialogue[Record]:
        reply = yield Ask(
            role="writer",
            prompt=(Message(role="user", content=item.question),),
            sampling=Sampling(max_tokens=8, temperature=0.0, seed=0),
        )
        return {"item_id": item.id, "text": reply.text}

    def finish(self, items: Sequence[Item], records: Sequence[Mapping[str, Any]]) -> Built:
        made = [
            make_item(
                benchmark="echo",
                split="test",
                subject=item.subject,
                question=f"{record['text']} {item.question}",
                choices=item.choices,
                answer=item.answer,
                source_id=item.id,
            )
            for item, record in zip(items, records, strict=True)
        ]
        return Built(items=made[: self.options.keep], summary={"made": len(made)}, sets={"again": made})

    def prompt_hashes(self) -> dict[str, str]:
        return {}


@pytest.fixture(autouse=True)
def _echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(builders.BUILDERS, "echo", "tests.proctor.test_build:Echo")
    monkeypatch.setattr(builders, "builder", lambda name: {"echo": Echo}[name])


def value(**changes: Any) -> dict[str, Any]:
    made = {
        "builds": {"b": {"builder": "echo", "roles": {"writer": "q"}}},
        "exams": {
            "built": {"protocol": "static", "build": "b", "items": "leaked", "limit": 2},
            "again": {"protocol": "static", "build": "b", "set": "again"},
        },
        "detection": None,
    }
    return scripted(**{**made, **changes})


def test_a_built_item_is_in_the_half_of_its_seed(tmp_path: Path) -> None:
    run = do(tmp_path, value(), "exam", "build.b", "built.one", "again.one")
    exam, built = read_exam(run / "exam"), read_exam(run / "stages" / "build.b")
    assert [item.source_id for item in built.items] == [item.id for item in exam.items]
    assert built.halved
    assert {item.source_id for item in built.items if item.id in built.leaked} == exam.leaked
    rows = read_jsonl(run / "stages" / "built.one" / "records.jsonl")
    expected = [item.id for item in built.items if item.id in built.leaked][:2]
    assert [row["item_id"] for row in rows] == expected
    assert {row["half"] for row in rows} == {"leaked"}
    assert len(read_jsonl(run / "stages" / "again.one" / "records.jsonl")) == 12
    metrics = read_json(run / "stages" / "build.b" / "metrics.json")
    assert (metrics["items"], metrics["made"]) == (12, 12)
    usage = read_json(run / "stages" / "build.b" / "usage.json")
    assert usage["roles"]["writer"]["calls"] == 12


def test_own_seeds_have_no_halves(tmp_path: Path) -> None:
    own = {"builder": "echo", "roles": {"writer": "q"}, "benchmark": {"format": "embedded", "limit": 3}}
    exams = {"built": {"protocol": "static", "build": "b"}}
    run = do(tmp_path, value(builds={"b": own}, exams=exams), "build.b", "built.one")
    assert {row["half"] for row in read_jsonl(run / "stages" / "built.one" / "records.jsonl")} == {"all"}
    assert len(read_exam(run / "stages" / "build.b").items) == 3


def test_a_set_that_was_not_made_is_named(tmp_path: Path) -> None:
    exams = {"x": {"protocol": "static", "build": "b", "set": "third"}}
    with pytest.raises(ValueError, match=r"exams\.x\.set: the build made no set 'third'; it made again"):
        do(tmp_path, value(exams=exams), "exam", "build.b", "x.one")


def test_an_empty_exam_fails_and_leaves_its_records(tmp_path: Path) -> None:
    builds = {"b": {"builder": "echo", "roles": {"writer": "q"}, "options": {"keep": 0}}}
    with pytest.raises(RuntimeError, match="made no item of 12 tries"):
        do(tmp_path, value(builds=builds), "exam", "build.b")
    assert len(read_jsonl(tmp_path / "run" / "stages" / "build.b" / "records.jsonl")) == 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exams": {"x": {"protocol": "static", "build": "c"}}}, r"exams\.x\.build: 'c' is not an entry of builds"),
        ({"exams": {"x": {"protocol": "static", "set": "c"}}}, "give 'build' too"),
        (
            {"exams": {"x": {"protocol": "static", "build": "b", "benchmark": {"format": "embedded"}}}},
            "either 'benchmark' or 'build'",
        ),
        ({"builds": {"b": {"builder": "echo", "roles": {"writer": "z"}}}}, r"builds\.b\.roles\.writer: 'z'"),
        ({"builds": {"b": {"builder": "echo"}}}, "nobody plays 'writer'"),
        (
            {"builds": {"b": {"builder": "echo", "roles": {"writer": "q"}, "options": {"keep": -1}}}},
            r"builds\.b: echo\.keep",
        ),
        (
            {
                "builds": {
                    "b": {
                        "builder": "echo",
                        "roles": {"writer": "q"},
                        "items": "leaked",
                        "benchmark": {"format": "embedded"},
                    }
                }
            },
            "no halves",
        ),
    ],
)
def test_a_wrong_build_is_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preflight(resolve(Experiment.model_validate(value(**changes))))


def test_a_right_one_passes_and_its_digest_knows_the_roles() -> None:
    first = resolve(Experiment.model_validate(value()))
    assert preflight(first).items == {}
    other = value(builds={"b": {"builder": "echo", "roles": {"writer": "m"}}})
    changed = plan(resolve(Experiment.model_validate(other)))
    assert find(plan(first), "build.b").config != find(changed, "build.b").config
    assert find(plan(first), "built.one").needs == ("build.b",)


def test_the_command_writes_a_benchmark_file_and_does_it_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    line = ["build", "echo", "--model", "writer=none", "--engine", "scripted", "--limit", "5", "--out", str(out)]
    app(line, standalone_mode=False)
    first = (out / "items.jsonl").read_bytes()
    assert len(first.splitlines()) == 5
    assert "made: 5" in capsys.readouterr().out
    app(line, standalone_mode=False)
    assert "nothing to do" in capsys.readouterr().out
    assert (out / "items.jsonl").read_bytes() == first
    from evaluation import benchmarks

    assert [item.to_json() for item in benchmarks.load("jsonl", out / "items.jsonl")] == [
        json.loads(row) for row in first.decode().splitlines()
    ]


def test_who_plays() -> None:
    assert playing(("a", "b"), ["a=x", "y"]) == {"a": "x", "b": "y"}
    assert playing(("a",), ["./folder=1/m"]) == {"a": "./folder=1/m"}
    for given, message in (
        ([], "nobody plays 'a'"),
        (["c=x"], "no role 'c'"),
        (["a=x", "a=y"], "played by x already"),
        (["x", "y"], "plays every role"),
    ):
        with pytest.raises(ValueError, match=message):
            playing(("a", "b"), given)


def test_builds_survive_the_written_experiment(tmp_path: Path) -> None:
    run = do(tmp_path, value(), "exam")
    written = yaml.safe_load((run / "experiment.yaml").read_text(encoding="utf-8"))
    assert written["builds"]["b"]["roles"] == {"writer": "q"}
