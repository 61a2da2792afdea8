"""Another evaluator judges stored interviews (KIEval, section 3.3): how far does a score depend on its judge?

The records of ``kieval`` are read; the candidate and the interactor are asked nothing. The evaluator judges every
round, shown the stored conversation and its own earlier verdicts. The same model can judge again by votes: each is
sampled with a seed of its own, and a round's verdict is their majority (``judge.majority``).

Two evaluators agree on the rounds to which both gave a score: Cohen's kappa (1960) over the scores 1..4, unweighted and
with quadratic weights (1968), from scikit-learn; correlations from scipy. A figure that the data can't give is None
with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluation.items import Item
from evaluation.kieval import prompts as prompts
from evaluation.kieval.conversation import Conversation
from evaluation.kieval.judge import judge
from evaluation.kieval.options import RoundJudgeOptions
from evaluation.kieval.scores import SCALES, figure, paper, released, token_means
from evaluation.protocol import ProtocolOptions, Record
from serving.records import Dialogue

Records = Sequence[Mapping[str, Any]]
Figure = dict[str, Any]
SCORES = (1, 2, 3, 4)


class Rejudge:
    """The protocol ``rejudge``.

    A record: ``item_id``, ``subject``; ``rounds`` [{overall, verdict, votes [{overall, stop, attempts}], attempts,
    dropped_rounds}]; ``would_stop_at``: index of the first round at which this evaluator would have stopped, or None;
    ``scores`` {paper, released}: as the protocol scores the interview that ends there (paper: the rounds after it are
    0); ``scores_all_rounds`` {paper, released}: of every stored round; ``missing_verdicts``, ``tokens``.

    The stored interview's length stands. Where its own evaluator ended it and this one wouldn't have, the rounds that
    didn't take place are left out of both scores: nobody knows what they would have been worth.
    """

    name: ClassVar[str] = "rejudge"
    version: ClassVar[int] = 2
    roles: ClassVar[tuple[str, ...]] = ("evaluator",)
    Options: ClassVar[type[ProtocolOptions]] = RoundJudgeOptions

    def __init__(
        self, options: RoundJudgeOptions, *, seed: int, exemplars: Sequence[Item] = (), originals: Records = ()
    ) -> None:
        """originals: the stored records of ``kieval``, one for each item that will be asked for, in any order."""
        self.options = options
        self.seed = seed
        self.originals = originals

    def dialogues(self, items: Sequence[Item], originals: Records | None = None) -> Iterator[Dialogue[Record]]:
        """One generator per item, in their order. ValueError (at once) for an item without a stored interview."""
        stored = _matched([item.id for item in items], self.originals if originals is None else originals)
        return (self._judge_again(item, original) for item, original in zip(items, stored, strict=True))

    def _judge_again(self, item: Item, original: Mapping[str, Any]) -> Dialogue[Record]:
        conversation = Conversation.about(item, self.roles)
        conversation.first_answer = original["first_answer"]["text"]
        for number, stored in enumerate(original["rounds"], start=1):
            conversation.turns.append(prompts.Round(question=stored["question"], reply=stored["reply"]))
            yield from judge(conversation, self.options, seed=self.seed, step=f"rejudge/verdict/{number}")
        return self._record(conversation, original["rounds_allowed"])

    def _record(self, conversation: Conversation, allowed: int) -> Record:
        turns = conversation.turns
        overall = [turn.verdict.overall if turn.verdict else None for turn in turns]
        stop = next((i for i, turn in enumerate(turns) if turn.verdict is not None and turn.verdict.stop), None)
        heard = overall if stop is None else overall[: stop + 1]
        return {
            "item_id": conversation.item.id,
            "subject": conversation.item.subject,
            "rounds": [
                {
                    "overall": score,
                    "verdict": turn.verdict.to_json() if turn.verdict else None,
                    "votes": turn.votes,
                    "attempts": turn.attempts,
                    "dropped_rounds": turn.dropped["evaluator"],
                }
                for turn, score in zip(turns, overall, strict=True)
            ],
            "would_stop_at": stop,
            "scores": {
                "paper": paper(heard, rounds=allowed, stopped_early=stop is not None),
                "released": released(heard),
            },
            "scores_all_rounds": {
                "paper": paper(overall, rounds=allowed, stopped_early=False),
                "released": released(overall),
            },
            "missing_verdicts": overall.count(None),
            "tokens": conversation.tokens,
        }

    def summarise(self, records: Records, originals: Records | None = None) -> dict[str, Any]:
        """The new evaluator's figures, as ``kieval`` gives them, and ``agreement`` with the stored one's.

        ``would_stop_earlier``: interviews that it would have ended before their stored end. ``missing_votes``: of all
        votes, those that couldn't be read.
        """
        stored = _matched([r["item_id"] for r in records], self.originals if originals is None else originals)
        variants = {
            name: figure([r["scores"][name] for r in records], f"rejudge/{name}", self.seed, SCALES[name])
            for name in SCALES
        }
        rounds = [turn for record in records for turn in record["rounds"]]
        return {
            "n": len(records),
            "score": variants["released"]["mean"],
            "score_interval": variants["released"]["interval"],
            **variants,
            "all_rounds": {
                name: figure(
                    [r["scores_all_rounds"][name] for r in records], f"rejudge/all/{name}", self.seed, SCALES[name]
                )
                for name in SCALES
            },
            "rounds_judged": len(rounds),
            "missing_verdicts": sum(r["missing_verdicts"] for r in records),
            "missing_votes": sum(vote["overall"] is None for turn in rounds for vote in turn["votes"]),
            "unscored": sum(r["scores"]["released"] is None for r in records),
            "would_stop_earlier": sum(
                r["would_stop_at"] is not None and r["would_stop_at"] < len(r["rounds"]) - 1 for r in records
            ),
            "tokens": token_means(records, self.roles),
            "agreement": agreement(records, stored, seed=self.seed),
        }

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes((prompts.EVALUATOR_SYSTEM, prompts.EVALUATOR))


def _matched(item_ids: Sequence[str], originals: Records) -> list[Mapping[str, Any]]:
    """The stored record of each item; of an item that was examined twice, its records in their order."""
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for record in originals:
        waiting.setdefault(record["item_id"], []).append(record)
    matched = []
    for item_id in item_ids:
        if not waiting.get(item_id):
            raise ValueError(
                f"item {item_id} has no stored interview; give the records of kieval that belong to the items"
            )
        record = waiting[item_id].pop(0)
        if "rounds_allowed" not in record or not isinstance(record.get("rounds"), list):
            raise ValueError(
                f"the record of item {item_id} is none of kieval, version 2 or later (no rounds or rounds_allowed); "
                "run that exam again"
            )
        matched.append(record)
    return matched


def agreement(records: Records, originals: Records, *, seed: int) -> dict[str, Any]:
    """records: of ``rejudge``; originals: of ``kieval``, the same interviews in the same order.

    ``n`` pairs, ``missing`` {new, original} rounds without a verdict of the one or the other, ``exact`` (share of equal
    scores), ``kappa``, ``kappa_quadratic``, ``pearson`` and ``spearman``; ``mean_difference``, new minus original, the
    mean over interviews of each one's mean, with an interval over interviews, for the rounds of one interview
    depend on each other. ``stop``: the same of the wish to stop. ``interviews``: the same of the interviews' scores
    (released, over all stored rounds). ValueError where an interview has more or fewer rounds than were judged.
    """
    by_interview = [_rounds(new, old) for new, old in zip(records, originals, strict=True)]
    every = [pair for rounds in by_interview for pair in rounds]
    both = [(new, old) for new, old in every if new is not None and old is not None]
    scores = [(new["overall"]["score"], old["overall"]["score"]) for new, old in both]
    return {
        "n": len(scores),
        "missing": {"new": sum(new is None for new, _ in every), "original": sum(old is None for _, old in every)},
        "exact": _share(scores),
        "kappa": _kappa(scores, SCORES),
        "kappa_quadratic": _kappa(scores, SCORES, weights="quadratic"),
        **_correlations(scores),
        "mean_difference": figure([_mean_difference(rounds) for rounds in by_interview], "rejudge/difference", seed),
        "stop": _stop([(new["stop"], old["stop"]) for new, old in both]),
        "interviews": _interviews(records, originals, seed),
    }


def _rounds(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The two verdicts on each round."""
    if len(new["rounds"]) != len(old["rounds"]):
        raise ValueError(
            f"item {new['item_id']}: {len(new['rounds'])} rounds were judged again, but its interview has "
            f"{len(old['rounds'])}; give the records that were judged"
        )
    return [(a["verdict"], b["verdict"]) for a, b in zip(new["rounds"], old["rounds"], strict=True)]


def _mean_difference(rounds: Sequence[tuple[Any, Any]]) -> float | None:
    both = [new["overall"]["score"] - old["overall"]["score"] for new, old in rounds if new and old]
    return sum(both) / len(both) if both else None


def _stop(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    return {
        "n": len(pairs),
        "exact": _share(pairs),
        "kappa": _kappa([(int(new), int(old)) for new, old in pairs], (0, 1)),
        "both": sum(new and old for new, old in pairs),
        "only_new": sum(new and not old for new, old in pairs),
        "only_original": sum(old and not new for new, old in pairs),
        "neither": sum(not new and not old for new, old in pairs),
    }


def _interviews(records: Records, originals: Records, seed: int) -> dict[str, Any]:
    pairs = [
        (new["scores_all_rounds"]["released"], old["scores"]["released"])
        for new, old in zip(records, originals, strict=True)
    ]
    both = [(new, old) for new, old in pairs if new is not None and old is not None]
    differences = figure([new - old for new, old in both], "rejudge/interviews", seed)
    return {"n": len(both), **_correlations(both), "mean_difference": differences}


def _share(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    return sum(new == old for new, old in pairs) / len(pairs) if pairs else None


def _kappa(pairs: Sequence[tuple[int, int]], labels: Sequence[int], weights: str | None = None) -> Figure:
    if not pairs:
        return _none("no pairs")
    if len({value for pair in pairs for value in pair}) == 1:
        return _none("both gave one and the same value throughout, so chance agreement is 1")
    from sklearn.metrics import cohen_kappa_score

    new, old = zip(*pairs, strict=True)
    return {"value": float(cohen_kappa_score(new, old, labels=list(labels), weights=weights))}


def _correlations(pairs: Sequence[tuple[float, float]]) -> dict[str, Figure]:
    if len(pairs) < 3:
        return dict.fromkeys(("pearson", "spearman"), _none("fewer than 3 pairs"))
    new, old = zip(*pairs, strict=True)
    # Weighted means of equal scores may differ in their last digits.
    constant = [who for who, values in (("new", new), ("original", old)) if max(values) - min(values) < 1e-9]
    if constant:
        return dict.fromkeys(("pearson", "spearman"), _none(f"constant scores ({' and '.join(constant)})"))
    from scipy.stats import pearsonr, spearmanr

    return {
        "pearson": {"value": float(pearsonr(new, old).statistic)},
        "spearman": {"value": float(spearmanr(new, old).statistic)},
    }


def _none(reason: str) -> Figure:
    return {"value": None, "reason": reason}
