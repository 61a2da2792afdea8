"""The project's own exam (format ``embedded``), original questions that ship with the package.

Its split ``test`` is the exam, its split ``dev`` the pool of exemplars. A row has subject, question, choices, answer
and reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from evaluation.benchmarks.proctor_jsonl import item_of
from evaluation.benchmarks.reading import Located, json_rows

FILES = {"test": "exam.jsonl", "dev": "exemplars.jsonl"}

DEV_SPLIT = "dev"
"""Made for exemplars."""


def rows(path: Path | None, split: str | None) -> Iterator[Located]:
    """Every item of the split (``test`` if none is asked for). A path is refused: the exam is part of the package."""
    if path is not None:
        raise ValueError(f"the embedded exam takes no path, but {path} was given; for your own file use format: jsonl")
    wanted = split or "test"
    if wanted not in FILES:
        raise ValueError(f"the embedded exam has no split {wanted!r}; it has {', '.join(FILES)}")
    with resources.as_file(resources.files("evaluation") / "data" / FILES[wanted]) as file:
        for row in json_rows(file):
            yield item_of(row, benchmark="embedded", split=wanted)
