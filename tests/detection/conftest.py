"""Token tables written by hand, and a driver that answers a dialogue from a function instead of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from serving.records import Ask, Score, TokenScores


def make_tokens(
    logprobs: Sequence[float],
    segments: Sequence[str] | None = None,
    means: Sequence[float] = (),
    stds: Sequence[float] = (),
    dropped: int = 0,
) -> TokenScores:
    return TokenScores(
        ids=tuple(range(len(logprobs))),
        logprobs=tuple(logprobs),
        segments=tuple(segments or ["prompt"] * len(logprobs)),  # type: ignore[arg-type]
        means=tuple(means),
        stds=tuple(stds),
        dropped=dropped,
    )


def run_dialogue(dialogue: Any, answer: Callable[[Any], Any]) -> tuple[Any, list[Any]]:
    """Returns the dialogue's record and everything it yielded."""
    yielded = []
    try:
        wanted = next(dialogue)
        while True:
            yielded.append(wanted)
            one = isinstance(wanted, Ask | Score)
            wanted = dialogue.send(answer(wanted) if one else [answer(demand) for demand in wanted])
    except StopIteration as done:
        return done.value, yielded


@pytest.fixture
def tokens() -> Callable[..., TokenScores]:
    return make_tokens


@pytest.fixture
def drive() -> Callable[[Any, Callable[[Any], Any]], tuple[Any, list[Any]]]:
    return run_dialogue
