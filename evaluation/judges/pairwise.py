"""Win rate against a baseline: a judge says which of two replies is better, in both orders.

MT-Bench's pairwise mode (Zheng et al. 2023, arXiv 2306.05685) for conversations; for single questions what AlpacaEval
does (Dubois et al. 2024, arXiv 2404.04475), except that each pair is judged twice, with A and B exchanged. The
baseline's answers come from a local file. Where the two orders disagree the result is a tie, reported as inconsistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from evaluation.asking.turns import CANDIDATE_PLAIN, Turn, converse, reply_counts
from evaluation.asking.verdict import CHOICE, Judgement, JudgeOptions, VerdictForm, judge
from evaluation.items import Item
from evaluation.judges import shown as said
from evaluation.judges.baseline import read_baseline
from evaluation.judges.length_control import length_control
from evaluation.protocol import Record
from evaluation.statistics import mean, mean_of
from evaluation.templates import prompt_hash, quote, render
from serving.records import Dialogue, Message, Prompt, derive_seed

EVALUATOR_SYSTEM = "pairwise_evaluator_system.jinja"
EVALUATOR = "pairwise_evaluator.jinja"

Order = Literal["candidate_first", "baseline_first"]
"""Who is assistant A."""
ORDERS: Final[tuple[Order, ...]] = ("candidate_first", "baseline_first")
POINTS = {"win": 1.0, "tie": 0.5, "loss": 0.0}


class PairwiseOptions(JudgeOptions):
    """Those of every judge without dialogue, and:

    baseline: file of the baseline's answers (``evaluation.judges.baseline``); there is no default
    length_controlled: whether to report the length-controlled win rate (``evaluation.judges.length_control``)
    """

    form: ClassVar[VerdictForm] = CHOICE

    baseline: str = ""
    length_controlled: bool = False


class Pairwise:
    """The protocol ``pairwise``.

    A record: ``item_id``, ``subject``, ``source_id``, ``turns`` [{question, reply, finish_reason, baseline, verdicts,
    result, inconsistent, status, reference_used}], ``score`` (the mean of the known results: win 1, tie 0.5, loss 0; or
    None). ``verdicts`` holds for each order {choice (A, B or tie, as said), winner (candidate, baseline, tie), comment,
    attempts}. A turn's ``status`` is ``judged``, ``missing_verdict`` (an order has none: no result then),
    ``evaluator_context`` or ``unanswered``, as in ``mt_bench``.
    """

    name: ClassVar[str] = "pairwise"
    version: ClassVar[int] = 2
    roles: ClassVar[tuple[str, ...]] = ("candidate", "evaluator")
    Options: ClassVar[type[PairwiseOptions]] = PairwiseOptions
    score_said: ClassVar[str] = "1 win, 0.5 tie, 0 loss"
    shown = staticmethod(said.pairwise)

    def __init__(self, options: PairwiseOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        if not options.baseline:
            raise ValueError(
                "pairwise.baseline: missing; give the file of the answers to compare with: FastChat's model_answer, "
                "AlpacaEval's outputs, or the records.jsonl of a mt_bench or pairwise exam"
            )
        self.options = options
        self.seed = seed
        self.baseline = read_baseline(Path(options.baseline).expanduser())

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        pairs = [(item, self.baseline.answers_to(item)) for item in items]
        return (self.compare(item, answers) for item, answers in pairs)

    def compare(self, item: Item, answers: Sequence[str]) -> Dialogue[Record]:
        """One item: the candidate's conversation, then both orders of all its turns together."""
        turns = yield from converse(item, self.options, self.seed)
        answered = [turn for turn in turns if turn.answered]
        games = [(last, order) for last in range(len(answered)) for order in ORDERS]
        judgements = yield from judge(
            [evaluator(answered[: last + 1], answers, order, self.options) for last, order in games],
            [f"pairwise/{order}/{last + 1}" for last, order in games],
            self.options,
            seed=self.seed,
            item_id=item.id,
        )
        verdicts: list[dict[Order, Judgement]] = [{} for _ in turns]
        for (last, order), judgement in zip(games, judgements, strict=True):
            verdicts[last][order] = judgement
        rows = [_row(turns[: i + 1], answers[i], verdicts[i]) for i in range(len(turns))]
        return {
            "item_id": item.id,
            "subject": item.subject,
            "source_id": item.source_id,
            "turns": rows,
            "score": mean([POINTS[row["result"]] for row in rows if row["result"] is not None]),
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The set's figures, each rate with an interval over items (``statistics.mean_of``).

        ``win_rate`` is the mean of the items' scores: (wins + ties / 2) / n where every item has as many turns.
        ``position``: of the verdicts that choose a side, ``first_share`` chose the assistant shown first: 0.5 without
        bias. ``missing_verdicts`` counts orders, all else turns or items.
        """

        def rate(values: Sequence[float | None], name: str) -> dict[str, Any]:
            known = [value for value in values if value is not None]
            found = mean_of(known, seed=derive_seed(self.seed, "pairwise", name), scale=(0.0, 1.0))
            return {**found.to_json("win_rate"), "n": found.n}

        turns = [turn for record in records for turn in record["turns"]]
        longest = max((len(record["turns"]) for record in records), default=0)
        overall = rate([record["score"] for record in records], "win_rate")
        results = Counter(turn["result"] for turn in turns)
        states = Counter(turn["status"] for turn in turns)
        choices = Counter(verdict["choice"] for turn in turns for verdict in turn["verdicts"].values())
        chosen = choices["A"] + choices["B"]
        controlled = self._length_control(records) if self.options.length_controlled else None
        return {
            "n": len(records),
            "win_rate": overall["win_rate"],
            "win_rate_interval": overall["interval"],
            **({"win_rate_interval_note": overall["interval_note"]} if "interval_note" in overall else {}),
            **({"length_controlled_win_rate": controlled["win_rate"]} if controlled else {}),
            "wins": results["win"],
            "losses": results["loss"],
            "ties": results["tie"],
            "inconsistent": sum(bool(turn["inconsistent"]) for turn in turns),
            "missing_verdicts": sum(
                verdict["status"] == "unreadable" for turn in turns for verdict in turn["verdicts"].values()
            ),
            "evaluator_context": states["evaluator_context"],
            "unanswered": states["unanswered"],
            "unscored": sum(record["score"] is None for record in records),
            **reply_counts(turns),
            "reference_guided": sum(turn["reference_used"] for turn in turns),
            "position": {
                "first": choices["A"],
                "second": choices["B"],
                "tie": choices["tie"],
                "first_share": choices["A"] / chosen if chosen else None,
            },
            "orders": {order: rate([_order_score(r, order) for r in records], order) for order in ORDERS},
            "turns": {
                str(i + 1): rate(
                    [POINTS.get(r["turns"][i]["result"]) for r in records if i < len(r["turns"])], f"turn/{i + 1}"
                )
                for i in range(longest)
            },
            "categories": {
                name: rate([r["score"] for r in records if r["subject"] == name], f"category/{name}")
                for name in sorted({record["subject"] for record in records})
            },
            **({"length_control": controlled} if controlled else {}),
            "baseline": {"file": self.baseline.name, "sha256": self.baseline.sha256},
        }

    def _length_control(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One comparison per item: an item's turns are not independent of each other."""
        scored = [record for record in records if record["score"] is not None]
        differences = [
            sum(len(turn["reply"]) - len(turn["baseline"]) for turn in record["turns"] if turn["result"] is not None)
            for record in scored
        ]
        return length_control([record["score"] for record in scored], differences).to_json()

    def prompt_hashes(self) -> dict[str, str]:
        """Those of the prompts, and that of the baseline's file: other answers make another exam."""
        files = {name: prompt_hash(name) for name in (CANDIDATE_PLAIN, EVALUATOR_SYSTEM, EVALUATOR)}
        return {**files, f"baseline:{self.baseline.name}": self.baseline.sha256}


def evaluator(turns: Sequence[Turn], answers: Sequence[str], order: Order, options: JudgeOptions) -> Prompt:
    """The demand for a choice between the last replies of two conversations, turn by turn side by side."""
    limit = options.quote_limit
    shown = []
    for turn, answer in zip(turns, answers, strict=False):
        replies = (turn.reply, answer) if order == "candidate_first" else (answer, turn.reply)
        shown.append(
            {
                "question": quote(turn.question),
                "reference": quote(turn.reference, limit) if turn.reference else "",
                "a": quote(replies[0], limit),
                "b": quote(replies[1], limit),
            }
        )
    system = render(
        EVALUATOR_SYSTEM,
        reference=any(turn.reference for turn in turns),
        free=options.verdict == "free",
        comment_length=options.comment_length,
    )
    return (Message(role="system", content=system), Message(role="user", content=render(EVALUATOR, turns=shown)))


def _row(turns: Sequence[Turn], answer: str, judged: Mapping[Order, Judgement]) -> dict[str, Any]:
    """The record of the last of these turns."""
    verdicts = {
        order: {
            "choice": judgement.value,
            "winner": _winner(judgement.value, order),
            "comment": judgement.comment,
            "attempts": judgement.attempts,
            "status": judgement.status,
        }
        for order, judgement in judged.items()
    }
    winners = [verdict["winner"] for verdict in verdicts.values()]
    states = {judgement.status for judgement in judged.values()}
    result, inconsistent = None, None
    if winners and None not in winners:
        inconsistent = len(set(winners)) > 1
        result = "tie" if inconsistent else {"candidate": "win", "baseline": "loss", "tie": "tie"}[str(winners[0])]
    if not judged:
        status = "unanswered"
    elif "context" in states:
        status = "evaluator_context"
    else:
        status = "missing_verdict" if "unreadable" in states else "judged"
    return {
        "question": turns[-1].question,
        "reply": turns[-1].reply,
        "finish_reason": turns[-1].finish_reason,
        "baseline": answer,
        "verdicts": verdicts,
        "result": result,
        "inconsistent": inconsistent,
        "status": status,
        "reference_used": bool(judged) and any(turn.reference for turn in turns),
    }


def _winner(choice: int | str | None, order: Order) -> str | None:
    if choice is None or choice == "tie":
        return None if choice is None else "tie"
    return "candidate" if (choice == "A") == (order == "candidate_first") else "baseline"


def _order_score(record: Mapping[str, Any], order: Order) -> float | None:
    """The candidate's score in one order alone: the mean over the turns that have a verdict there."""
    points = {"candidate": 1.0, "tie": 0.5, "baseline": 0.0}
    verdicts = [turn["verdicts"][order] for turn in record["turns"] if order in turn["verdicts"]]
    return mean([points[verdict["winner"]] for verdict in verdicts if verdict["winner"] is not None])
