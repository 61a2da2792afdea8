"""Several conversations of one item side by side: what they ask for is asked together."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from serving.records import Ask, Demand, Score, Yielded

T = TypeVar("T")


def together(dialogues: Sequence[Generator[Yielded, Any, T]]) -> Generator[Yielded, Any, list[T]]:
    """Runs dialogues in step and returns their results in order; each sees only the answers to its own demands."""
    results: dict[int, T] = {}
    waiting: dict[int, Yielded] = {}

    def advance(index: int, value: Any) -> None:
        try:
            waiting[index] = dialogues[index].send(value)
        except StopIteration as end:
            results[index] = end.value

    for index in range(len(dialogues)):
        advance(index, None)
    while waiting:
        now, waiting = waiting, {}
        asked: list[Demand] = [demand for wanted in now.values() for demand in _listed(wanted)]
        answers = yield asked
        position = 0
        for index, wanted in now.items():
            count = len(_listed(wanted))
            own = answers[position : position + count]
            position += count
            advance(index, own[0] if isinstance(wanted, Ask | Score) else own)
    return [results[index] for index in range(len(dialogues))]


def _listed(wanted: Yielded) -> Sequence[Demand]:
    return [wanted] if isinstance(wanted, Ask | Score) else wanted
