"""The house has no circles: counted over the syntax trees, lazy imports and those for types alone included.

A room is the first two parts of a path: a folder, or a file that lies loose beside folders.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP = ("proctor", "serving", "evaluation", "training", "detection", "slurm")
LOOSE = {"__init__.py", "cli.py", "offline.py"}


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports() -> dict[str, set[str]]:
    """Every module of ours, and the modules of ours that it imports anywhere."""
    files = {module_of(file): file for top in TOP for file in (ROOT / top).rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, file in files.items():
        found[module] = {name for name in _imported(file, set(files)) if name != module}
    return found


def _imported(file: Path, ours: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: relative imports hide what is imported"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from [name] if name in ours else [node.module] if node.module in ours else []
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ours)


def rooms(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same, between rooms."""

    def room(module: str) -> str:
        path = module.replace(".", "/")
        file = path if (ROOT / path).is_dir() else f"{path}.py"
        if (ROOT / path).is_dir():
            file = f"{path}/__init__.py"
        return "/".join(file.split("/")[:2])

    found: dict[str, set[str]] = {room(module): set() for module in graph}
    for module, others in graph.items():
        found[room(module)] |= {room(other) for other in others} - {room(module)}
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    names = sorted(graph)
    place = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=bool)
    for name, others in graph.items():
        matrix[place[name], [place[other] for other in others]] = True
    count, label = connected_components(csr_array(matrix), directed=True, connection="strong")
    groups = [[name for name in names if label[place[name]] == group] for group in range(count)]
    return [group for group in groups if len(group) > 1]


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set[str]()}
    assert circles(graph) == [["a", "b", "c"]]


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return imports()


def test_no_circle_between_files(graph: dict[str, set[str]]) -> None:
    assert circles(graph) == []


def test_no_circle_between_rooms(graph: dict[str, set[str]]) -> None:
    assert circles(rooms(graph)) == []


def test_nothing_lies_loose_at_the_door() -> None:
    assert {file.name for file in (ROOT / "proctor").glob("*.py")} == LOOSE


def test_every_template_has_a_name_of_its_own() -> None:
    """They are found by name alone, whichever room they lie in."""
    for top in ("evaluation", "detection"):
        names = [file.name for file in (ROOT / top).rglob("templates/*.jinja")]
        assert len(names) == len(set(names)) > 0
