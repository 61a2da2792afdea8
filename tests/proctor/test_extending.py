"""docs/extending.md is true: every entry of a registry has its docs row, and its worked protocol works."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from detection import sets
from evaluation import registry
from evaluation.benchmarks import formats
from evaluation.protocol import Held
from evaluation.show.plate import draw, styles
from proctor.report.table_files import as_csv
from tests.evaluation.exam_driver import drive, make_items, said
from training.recipe_traits import RECIPES

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def first_cells(text: str) -> set[str]:
    """What stands in backticks at the beginning of a table's rows."""
    return set(re.findall(r"^\| `([\w.]+)` \|", text, flags=re.MULTILINE))


def section(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n")[1].partition("\n## ")[0]


def test_formats_and_their_rows_are_the_same() -> None:
    assert first_cells(page("benchmarks.md").partition("\n## ")[0]) == set(formats())


EXPERIMENTS = page("experiments.md")
PROTOCOL_KEY = next(line for line in EXPERIMENTS.splitlines() if line.startswith("| `protocol` |"))


def test_kinds_and_their_rows_are_the_same() -> None:
    assert first_cells(section(EXPERIMENTS, "groups")) == set(registry.GROUPS)
    assert first_cells(section(EXPERIMENTS, "analyses")) == set(registry.ANALYSES)
    assert set(re.findall(r"`([\w.]+)`", PROTOCOL_KEY)) - {"protocol"} == set(registry.PROTOCOLS)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (registry.BUILDERS, section(EXPERIMENTS, "builds")),
        ((*registry.PROTOCOLS, *registry.GROUPS), section(page("results.md"), "Summaries of the protocols")),
        (registry.ANALYSES, next(p for p in page("results.md").split("\n\n") if p.startswith("`analyses`"))),
        (sets.names(), page("set_tests.md")),
        (RECIPES, page("training.md")),
    ],
    ids=["builders", "summaries", "analyses", "set tests", "recipes"],
)
def test_every_kind_is_on_its_page(names: Iterable[str], text: str) -> None:
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_files_that_it_names_are_there() -> None:
    named = re.findall(r"`((?:evaluation|detection|training|proctor|serving|tests)/[\w/.]*)`", page("extending.md"))
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
    links = re.findall(r"\((\w+\.md)", page("extending.md"))
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []


@pytest.fixture(scope="module")
def nods() -> Any:
    (source,) = re.findall(r"```python\n(.*?)```", page("extending.md"), flags=re.DOTALL)
    space: dict[str, Any] = {"__name__": "nods"}
    exec(compile(source, "docs/extending.md", "exec"), space)
    return space["Nods"]


def test_the_worked_protocol(nods: Any, tmp_path: Path) -> None:
    exam = nods(nods.Options(), seed=0)
    replies = iter(["Yes.", "no", "well"])
    records = [drive(one, lambda _: said(next(replies)))[1] for one in exam.dialogues(make_items(3))]
    assert [record["score"] for record in records] == [1, 0, None]
    found = exam.summarise(records)
    assert (found["n"], found["score"], found["unscored"]) == (3, 0.5, 1)
    assert exam.summarise([])["score"] is None
    assert [block["x"] for block in nods.shown(records[0])][1] == "Yes."
    held = {name: Held(options={}, metrics={"one": {"all": found}}) for name in ("a", "b")}
    tables = nods.tables(held)
    assert [table.name for table in tables] == ["nods.a", "nods.b"]
    assert as_csv(tables[0]).splitlines()[1].startswith("one,all,50.0,")
    drawings = draw(lambda: nods.plots(held, styles(["one"])), tmp_path)
    assert [drawing.name for drawing in drawings] == ["nods.a", "nods.b"]
