"""One comparison: two responses, in both orders.

Where the orders contradict each other the examiner chose a place, not a response: each gets 0.5, and the comparison
counts towards the examiner's inconsistency.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaluation.asking.until_read import ask_until_read
from evaluation.lm_examiner import prompts
from evaluation.lm_examiner.marking import ExaminerOptions
from serving.records import Yielded


class Pair(NamedTuple):
    """Two candidates; ``first`` precedes ``second`` in the input order."""

    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One pair on one question.

    choices: the winner with ``pair.first`` shown first, then with ``pair.second`` shown first; None: unreadable
    attempts: of both orders together
    """

    pair: Pair
    choices: tuple[str | None, str | None]
    attempts: int

    @property
    def known(self) -> bool:
        return None not in self.choices

    @property
    def consistent(self) -> bool:
        return self.known and self.choices[0] == self.choices[1]

    @property
    def points(self) -> float | None:
        """Of ``pair.first``: 1, 0.5 (contradictory) or 0; None where an order has no choice."""
        if not self.known:
            return None
        return sum(choice == self.pair.first for choice in self.choices) / 2

    def to_json(self) -> dict[str, Any]:
        return {
            "pair": list(self.pair),
            "choices": list(self.choices),
            "points": self.points,
            "consistent": self.consistent,
            "attempts": self.attempts,
        }


def compare(
    role: str,
    question: str,
    responses: Mapping[str, str],
    pair: Pair,
    options: ExaminerOptions,
    *,
    seed: int,
    item_id: str,
) -> Generator[Yielded, Any, Comparison]:
    """Both orders, asked together."""
    orders = (pair, Pair(pair.second, pair.first))
    readings = yield from ask_until_read(
        role,
        [
            prompts.compare(
                question,
                responses[a],
                responses[b],
                free=options.free,
                comment_length=options.comment_length,
                limit=options.quote_limit,
            )
            for a, b in orders
        ],
        [f"compare/{a}/{b}" for a, b in orders],
        options.choice_form(),
        retries=options.retries,
        seed=seed,
        item_id=item_id,
    )
    winners = [None if r.value is None else order[r.value - 1] for r, order in zip(readings, orders, strict=True)]
    return Comparison(pair=pair, choices=(winners[0], winners[1]), attempts=sum(r.attempts for r in readings))


def consistency(comparisons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of an examiner's comparisons (as JSON): how many, how many contradict themselves, the share of first places.

    ``inconsistency`` is over the comparisons whose orders both have a choice; ``first_share``: of all choices, those
    for the response shown first (0.5 without position bias).
    """
    known = [row for row in comparisons if row["points"] is not None]
    contradictory = sum(not row["consistent"] for row in known)
    firsts = [
        row["choices"][side] == row["pair"][side] for row in comparisons for side in (0, 1) if row["choices"][side]
    ]
    return {
        "comparisons": len(comparisons),
        "known": len(known),
        "contradictory": contradictory,
        "inconsistency": contradictory / len(known) if known else None,
        "first_share": sum(firsts) / len(firsts) if firsts else None,
        "unreadable": len(comparisons) - len(known),
    }
