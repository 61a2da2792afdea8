from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.items import Item
from evaluation.kieval.judge import majority
from evaluation.kieval.options import RoundJudgeOptions
from evaluation.kieval.rejudge import Rejudge
from evaluation.kieval.verdict import ASPECTS, RoundVerdict
from evaluation.registry import build
from serving.records import Ask, Completion
from tests.evaluation.exam_driver import drive, make_items, said, scripted

Record = dict[str, Any]


def verdict(overall: int = 3, *, stop: bool = False, reason: str = "none", comment: str = "c") -> Completion:
    judged = {name: {"comment": comment, "score": overall} for name in (*ASPECTS, "overall")}
    return said(json.dumps({**judged, "reason": reason, "stop": stop}))


def stored(item: Item, *verdicts: Completion, rounds: int | None = None, **options: Any) -> Record:
    """An interview as records.jsonl holds it."""
    protocol = build("kieval", {"rounds": rounds or len(verdicts), "retries": 0, **options}, seed=7)
    replies = scripted(
        candidate=[said("B"), *(said(f"REPLY-{i}") for i in range(1, 9))],
        interactor=[said(f"QUESTION-{i}") for i in range(1, 9)],
        evaluator=list(verdicts),
    )
    record = drive(next(iter(protocol.dialogues([item]))), replies)[1]
    return json.loads(json.dumps({**record, "half": "leaked"}))


def again(item: Item, original: Record, *verdicts: Completion, **options: Any) -> tuple[list[Ask], Record]:
    protocol = Rejudge(RoundJudgeOptions(**{"retries": 0, **options}), seed=7, originals=[original])
    demands, record = drive(next(iter(protocol.dialogues([item]))), scripted(evaluator=list(verdicts)))
    assert json.loads(json.dumps(record)) == record
    return [ask for ask in demands if isinstance(ask, Ask)], record


def text_of(ask: Ask) -> str:
    assert isinstance(ask.prompt, tuple)
    return "\n".join(message.content for message in ask.prompt)


def one(
    overall: int, stop: bool = False, reason: str = "none", comment: str = "", **scores: int | None
) -> RoundVerdict:
    return RoundVerdict(
        overall=overall,
        comment=comment,
        scores={**dict.fromkeys(ASPECTS, overall), **scores},
        comments=dict.fromkeys(ASPECTS, comment),
        stop=stop,
        reason=reason,
    )


def test_only_the_evaluator_is_asked_about_every_stored_round(item: Item) -> None:
    original = stored(item, verdict(4, comment="OLD"), verdict(3, comment="OLD"), verdict(2, comment="OLD"))
    asks, record = again(item, original, verdict(1, comment="NEW"), verdict(2), verdict(4))
    assert [ask.role for ask in asks] == ["evaluator"] * 3
    assert [turn["overall"] for turn in record["rounds"]] == [1, 2, 4]
    assert all("OLD" not in text_of(ask) for ask in asks)
    assert [text_of(ask).count("| NEW") for ask in asks] == [0, 1, 1]
    assert "| REPLY-2" in text_of(asks[1])
    assert "REPLY-3" not in text_of(asks[1])
    assert next(iter(record)) == "item_id"
    assert record["tokens"] == {"evaluator": {"prompt": 3, "output": 3, "calls": 3}}


def test_the_same_evaluator_is_asked_the_same(item: Item) -> None:
    """Greedy and with the same verdicts, so that a ledger can answer it."""
    verdicts = [verdict(4), verdict(2)]
    protocol = build("kieval", {"rounds": 2}, seed=7)
    replies = scripted(candidate=[said("B")], interactor=[said("q")], evaluator=verdicts)
    demands, record = drive(next(iter(protocol.dialogues([item]))), replies)
    asks, _ = again(item, record, *verdicts, retries=2)
    assert asks == [ask for ask in demands if ask.role == "evaluator"]


def test_a_stop_that_comes_earlier(item: Item) -> None:
    original = stored(item, verdict(4), verdict(4), verdict(4), rounds=3)
    _, record = again(item, original, verdict(4), verdict(2, stop=True, reason="repetition"), verdict(4))
    assert record["would_stop_at"] == 1
    # e^(-1/3) = .7165313, e^(-2/3) = .5134171
    weights = 1 + 0.7165313 + 0.5134171
    assert record["scores"]["paper"] == pytest.approx((1 + 0.7165313 / 3) / weights, abs=1e-6)
    assert record["scores_all_rounds"]["paper"] == pytest.approx((weights - 0.7165313 * 2 / 3) / weights, abs=1e-6)
    assert record["scores"]["released"] == pytest.approx((1 + 0.8187308 * 0.3) / 1.8187308, abs=1e-6)
    assert record["scores_all_rounds"]["released"] > record["scores"]["released"]


def test_a_stop_that_this_evaluator_would_not_have_made_costs_nothing(item: Item) -> None:
    original = stored(item, verdict(2, stop=True, reason="off_topic"), rounds=5)
    _, record = again(item, original, verdict(4))
    assert (len(record["rounds"]), record["would_stop_at"]) == (1, None)
    assert record["scores"]["paper"] == record["scores_all_rounds"]["paper"] == pytest.approx(1.0)


def test_missing_verdicts_keep_their_place(item: Item) -> None:
    original = stored(item, verdict(), verdict(), verdict())
    asks, record = again(item, original, verdict(4), said("no"), verdict(2))
    assert [turn["overall"] for turn in record["rounds"]] == [4, None, 2]
    assert record["scores"]["released"] == pytest.approx((1 + 0.67032 * 0.3) / 1.67032, abs=1e-6)
    assert record["missing_verdicts"] == 1
    assert "none could be read" in text_of(asks[2])


def test_votes_are_sampled_with_seeds_of_their_own(item: Item) -> None:
    original = stored(item, verdict(), verdict())
    bad = said("no")
    asks, record = again(
        item, original, verdict(1), bad, verdict(4), verdict(3), verdict(2), bad, bad, bad, votes=3, retries=1
    )
    sampled = [ask.sampling for ask in asks]
    assert {sampling.temperature for sampling in sampled} == {0.7}
    assert len({sampling.seed for sampling in sampled}) == len(sampled) == 3 + 1 + 3 + 2
    first, second = record["rounds"]
    assert [vote["overall"] for vote in first["votes"]] == [1, 3, 4]
    assert [vote["attempts"] for vote in first["votes"]] == [1, 2, 1]
    assert (first["overall"], first["attempts"]) == (3, 4)
    # one vote that can be read is enough
    assert [vote["overall"] for vote in second["votes"]] == [2, None, None]
    assert second["overall"] == 2
    assert again(item, original, verdict(), votes=3)[0] == again(item, original, verdict(), votes=3)[0]


def test_the_majority() -> None:
    assert majority([]) is None
    assert majority([one(3)]) == one(3)
    middle = majority([one(1, comment="low"), one(4), one(2, comment="two")])
    assert middle is not None
    assert (middle.overall, middle.comment) == (2, "two")
    # ties go down for scores, and half is not enough to stop
    even = majority([one(4, stop=True, reason="repetition", logic=None), one(3, logic=None)])
    assert even is not None
    assert (even.overall, even.scores["accuracy"], even.scores["logic"]) == (3, 3, None)
    assert (even.stop, even.reason) == (False, "none")
    stop = majority([one(1, True, "repetition"), one(1, True, "off_topic"), one(1, True), one(1)])
    assert stop is not None
    assert (stop.stop, stop.reason) == (True, "off_topic")
    unstated = majority([one(1, True)])
    assert unstated is not None
    assert (unstated.stop, unstated.reason) == (True, "none")


def test_context_overflow_drops_rounds_and_else_leaves_a_gap(item: Item) -> None:
    original = stored(item, verdict(), verdict(), verdict())
    protocol = Rejudge(RoundJudgeOptions(), seed=7, originals=[original])

    def short(ask: Ask) -> Completion:
        text = text_of(ask)
        full = text.count("| QUESTION-") > 1 or "| QUESTION-2" in text
        return said("", "context") if full else verdict(3)

    _, record = drive(next(iter(protocol.dialogues([item]))), short)
    assert [turn["overall"] for turn in record["rounds"]] == [3, None, 3]
    assert [turn["dropped_rounds"] for turn in record["rounds"]] == [0, 1, 2]


def test_an_item_without_a_usable_interview_is_an_error(item: Item) -> None:
    protocol = Rejudge(RoundJudgeOptions(), seed=7)
    with pytest.raises(ValueError, match=f"item {item.id} has no stored interview"):
        protocol.dialogues([item])
    with pytest.raises(ValueError, match="none of kieval"):
        protocol.dialogues([item], [{"item_id": item.id, "correct": True}])
    original = stored(item, verdict())
    assert len(list(protocol.dialogues([item, item], [original, original]))) == 2
    with pytest.raises(ValueError, match="no stored interview"):
        protocol.dialogues([item, item], [original])


def test_an_interview_without_rounds(item: Item) -> None:
    original = {**stored(item, verdict()), "rounds": [], "rounds_completed": 0, "scores": {"released": None}}
    asks, record = again(item, original)
    assert (asks, record["rounds"], record["would_stop_at"]) == ([], [], None)
    assert record["scores"] == {"paper": None, "released": None}
    summary = Rejudge(RoundJudgeOptions(), seed=1).summarise([record], [original])
    assert (summary["unscored"], summary["agreement"]["n"], summary["agreement"]["exact"]) == (1, 0, None)
    assert summary["agreement"]["kappa"] == {"value": None, "reason": "no pairs"}


def rejudged(old: list[list[Completion]], new: list[list[Completion]]) -> tuple[list[Record], list[Record]]:
    items = make_items(len(old))
    originals = [stored(item, *given, early_stop=False) for item, given in zip(items, old, strict=True)]
    records = [again(items[i], originals[i], *given)[1] for i, given in enumerate(new)]
    return records, originals


def test_agreement_by_hand() -> None:
    """Pairs (new, old): (1,1) (2,1) (3,3) (4,4) (4,3) (2,2).

    exact 4/6; chance: 1: 1/6 2/6, 2: 2/6 1/6, 3: 1/6 2/6, 4: 2/6 1/6 = 8/36; kappa (24/36 - 8/36) / (28/36) = 4/7.
    Quadratic: sum d^2 = 2; expected = sum over i, j of n_i m_j (i-j)^2 / 6 with new counts 1 2 1 2, old 2 1 2 1:
    i=1: 0+1+8+9 = 18; i=2: 2(2+0+2+4) = 16; i=3: 8+1+0+1 = 10; i=4: 2(18+4+2+0) = 48; 92/6; kappa 1 - 12/92.
    """
    old = [[verdict(1), verdict(1)], [verdict(3), verdict(4)], [verdict(3, stop=True), verdict(2)]]
    new = [[verdict(1), verdict(2)], [verdict(3), verdict(4)], [verdict(4, stop=True), verdict(2, stop=True)]]
    records, originals = rejudged(old, new)
    found = Rejudge(RoundJudgeOptions(), seed=1).summarise(records, originals[::-1])["agreement"]
    assert found["n"] == 6
    assert found["exact"] == pytest.approx(4 / 6)
    assert found["kappa"]["value"] == pytest.approx(4 / 7)
    assert found["kappa_quadratic"]["value"] == pytest.approx(1 - 12 / 92)
    xs, ys = [1, 2, 3, 4, 4, 2], [1, 1, 3, 4, 3, 2]
    mx, my = sum(xs) / 6, sum(ys) / 6
    covariance = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    spread = (sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys)) ** 0.5
    assert found["pearson"]["value"] == pytest.approx(covariance / spread)
    assert 0.8 < found["spearman"]["value"] < 1
    # per interview .5, 0, .5
    assert found["mean_difference"]["mean"] == pytest.approx(1 / 3)
    # t(.975, 2) = 4.3027 times the error 1/6
    assert found["mean_difference"]["interval"] == pytest.approx([1 / 3 - 4.3027 / 6, 1 / 3 + 4.3027 / 6], abs=1e-4)
    stop = found["stop"]
    assert (stop["n"], stop["both"], stop["only_new"], stop["only_original"], stop["neither"]) == (6, 1, 1, 0, 4)
    # exact 5/6, chance (2 x 1 + 4 x 5) / 36 = 22/36
    assert stop["kappa"]["value"] == pytest.approx((30 - 22) / (36 - 22))
    assert found["interviews"]["n"] == 3


def test_constant_scores_have_no_coefficient() -> None:
    records, originals = rejudged([[verdict(3)] * 3], [[verdict(3)] * 3])
    found = Rejudge(RoundJudgeOptions(), seed=1).summarise(records, originals)["agreement"]
    assert found["exact"] == 1.0
    for name in ("kappa", "kappa_quadratic"):
        assert found[name]["value"] is None
        assert "chance agreement is 1" in found[name]["reason"]
    assert found["pearson"] == {"value": None, "reason": "constant scores (new and original)"}
    assert found["interviews"]["pearson"] == {"value": None, "reason": "fewer than 3 pairs"}
    records, originals = rejudged([[verdict(3)] * 3], [[verdict(1), verdict(3), verdict(4)]])
    found = Rejudge(RoundJudgeOptions(), seed=1).summarise(records, originals)["agreement"]
    assert found["kappa"]["value"] == pytest.approx(0.0)
    assert found["spearman"] == {"value": None, "reason": "constant scores (original)"}


def test_summary_counts_what_is_missing() -> None:
    bad = said("no")
    records, originals = rejudged(
        [[verdict(3), bad, verdict(2)], [verdict(4)] * 3], [[bad, verdict(3), verdict(2, stop=True)], [verdict(4)] * 3]
    )
    summary = Rejudge(RoundJudgeOptions(), seed=1, originals=originals).summarise(records)
    assert summary["agreement"]["missing"] == {"new": 1, "original": 1}
    assert summary["agreement"]["n"] == 4
    assert (summary["missing_verdicts"], summary["missing_votes"], summary["rounds_judged"]) == (1, 1, 6)
    assert (summary["unscored"], summary["would_stop_earlier"]) == (0, 0)
    assert summary["tokens"]["evaluator"]["calls"] == 3
    assert summary["released"]["n"] == summary["all_rounds"]["paper"]["n"] == 2
    assert json.loads(json.dumps(summary)) == summary
    with pytest.raises(ValueError, match="3 rounds were judged again, but its interview has 1"):
        Rejudge(RoundJudgeOptions(), seed=1).summarise(records, [{**o, "rounds": o["rounds"][:1]} for o in originals])


def test_settings_and_hashes() -> None:
    assert set(Rejudge(RoundJudgeOptions(), seed=1).prompt_hashes()) == {
        "kieval_evaluator.jinja",
        "kieval_evaluator_system.jinja",
    }
    with pytest.raises(ValueError, match="evaluator_tokens is 5"):
        RoundJudgeOptions(evaluator_tokens=5)
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        RoundJudgeOptions(votes=0)
