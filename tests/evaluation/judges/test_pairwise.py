from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.asking.verdict import CHOICE
from evaluation.items import Item, make_item
from evaluation.judges.length_control import length_control
from evaluation.judges.pairwise import read_baseline
from evaluation.registry import build
from serving.records import Ask, Completion, Message
from tests.evaluation.exam_driver import Reply, drive, make_items, said, scripted
from tests.evaluation.judges.test_mt_bench import HOSTILE, question, rating, sit, skeleton, text_of

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Rows to a file: JSON Lines, or one JSON list where the name ends in .json."""

    def written(*rows: Any, name: str = "baseline.jsonl") -> Path:
        path = tmp_path / name
        lines = (
            json.dumps(rows, indent=1) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
        )
        path.write_text(lines, encoding="utf-8")
        return path

    return written


def fastchat(*turns: Any, question_id: Any = 101) -> dict[str, Any]:
    return {"question_id": question_id, "model_id": "m", "choices": [{"index": 0, "turns": list(turns)}]}


def chosen(value: str, comment: str = "JUDGED") -> Completion:
    return said(json.dumps({"comment": comment, "choice": value}))


def compare(
    item: Item, baseline: Path, replies: Reply | None = None, seed: int = 7, **options: Any
) -> tuple[list[Ask], dict[str, Any]]:
    protocol = build("pairwise", {"baseline": str(baseline), **options}, seed=seed)
    answer = replies or judged("A", "B", "A", "B")
    demands, record = drive(next(iter(protocol.dialogues([item]))), answer)
    assert json.loads(json.dumps(record)) == record
    return [ask for ask in demands if isinstance(ask, Ask)], record


def judged(*choices: str) -> Reply:
    """A candidate, and an evaluator that chooses in the order it is asked; "-" can't be read."""
    return scripted(
        candidate=[said("ONE"), said("REPLY")],
        evaluator=[said("no") if choice == "-" else chosen(choice) for choice in choices],
    )


def test_every_turn_is_compared_in_both_orders(write: Write) -> None:
    asks, record = compare(question(), write(fastchat("BASE 1", "BASE 2")))
    assert [ask.role for ask in asks] == ["candidate"] * 2 + ["evaluator"] * 4
    assert list(record) == ["item_id", "subject", "source_id", "turns", "score"]
    assert record["score"] == 1.0
    second = record["turns"][1]
    assert list(second) == [
        "question",
        "reply",
        "finish_reason",
        "baseline",
        "verdicts",
        "result",
        "inconsistent",
        "status",
        "reference_used",
    ]
    assert (second["question"], second["reply"], second["baseline"]) == ("And twice that?", "REPLY", "BASE 2")
    assert (second["result"], second["inconsistent"], second["status"]) == ("win", False, "judged")
    assert second["verdicts"]["baseline_first"] == {
        "choice": "B",
        "winner": "candidate",
        "comment": "JUDGED",
        "attempts": 1,
        "status": "given",
    }
    head = "Turn 1. User:\n| What is 1 + 1?\n\nTurn 1. Reference answer (the assistants did not see it):\n| TWO\n\n"
    assert isinstance(asks[2].prompt, tuple)
    assert asks[2].prompt[1].content == (
        f"{head}Turn 1. Assistant A:\n| ONE\n\nTurn 1. Assistant B:\n| BASE 1\n\n"
        "Compare the two replies of turn 1: say how they differ, then choose."
    )
    assert isinstance(asks[5].prompt, tuple)
    assert asks[5].prompt[1].content == (
        f"{head}Turn 1. Assistant A:\n| BASE 1\n\nTurn 1. Assistant B:\n| ONE\n\n"
        "Turn 2. User:\n| And twice that?\n\nTurn 2. Reference answer (the assistants did not see it):\n| FOUR\n\n"
        "Turn 2. Assistant A:\n| BASE 2\n\nTurn 2. Assistant B:\n| REPLY\n\n"
        "Compare the two replies of turn 2: say how they differ, then choose."
    )
    assert asks[2].schema == CHOICE.fields(300).schema()


def test_all_orders_are_asked_for_together(write: Write) -> None:
    protocol = build("pairwise", {"baseline": str(write(fastchat("x", "y")))}, seed=0)
    dialogue = next(iter(protocol.dialogues([question()])))
    next(dialogue)
    dialogue.send(said("a"))
    orders = dialogue.send(said("b"))
    assert isinstance(orders, list)
    assert [ask.role for ask in orders] == ["evaluator"] * 4


@pytest.mark.parametrize(
    ("first", "second", "result", "inconsistent"),
    [
        ("A", "B", "win", False),
        ("B", "A", "loss", False),
        ("tie", "tie", "tie", False),
        ("A", "A", "tie", True),
        ("B", "B", "tie", True),
        ("A", "tie", "tie", True),
        ("tie", "A", "tie", True),
        ("A", "-", None, None),
        ("-", "-", None, None),
    ],
)
def test_two_orders_make_one_result(
    write: Write, item: Item, first: str, second: str, result: str | None, inconsistent: bool | None
) -> None:
    baseline = write({"item_id": item.id, "turns": [{"reply": "BASE"}]})
    _, record = compare(item, baseline, judged(first, second), retries=0)
    turn = record["turns"][0]
    assert (turn["result"], turn["inconsistent"]) == (result, inconsistent)
    assert record["score"] == {"win": 1.0, "loss": 0.0, "tie": 0.5, None: None}[result]
    assert turn["status"] == ("judged" if result else "missing_verdict")


def test_only_the_order_without_verdict_is_asked_again(write: Write, item: Item) -> None:
    baseline = write({"item_id": item.id, "turns": [{"reply": "BASE"}]})
    asks, record = compare(item, baseline, judged("A", "-", "-", "B"))
    sampling = [ask.sampling for ask in asks[1:]]
    assert [s.temperature for s in sampling] == [0.0, 0.0, 0.7, 0.7]
    assert len({s.seed for s in sampling}) == 3
    assert asks[2].prompt == asks[3].prompt == asks[4].prompt != asks[1].prompt
    assert [verdict["attempts"] for verdict in record["turns"][0]["verdicts"].values()] == [1, 3]
    assert record["score"] == 1.0
    other, _ = compare(item, baseline, judged("A", "-", "-", "B"), seed=8)
    assert asks[-1].sampling.seed != other[-1].sampling.seed


def test_free_choices_are_read(write: Write, item: Item) -> None:
    baseline = write({"item_id": item.id, "turns": [{"reply": "BASE"}]})
    replies = scripted(candidate=[said("x")], evaluator=[said("Better.\nChoice: B"), said("[[A]]")])
    asks, record = compare(item, baseline, replies, verdict="free")
    assert record["score"] == 0.0
    assert asks[1].schema is None
    assert "Choice: tie" in text_of(asks[1])


def test_the_candidate_talks_as_in_mt_bench(write: Write) -> None:
    settings: list[dict[str, Any]] = [{"candidate_format": "plain"}, {"temperatures": "category"}]
    for options in settings:
        pairs, _ = compare(question("writing"), write(fastchat("x", "y")), **options)
        singles, _ = sit(question("writing"), **options)
        assert pairs[:2] == singles[:2]


@pytest.mark.parametrize("full", [0, 1, 2])
def test_a_full_context_is_told(write: Write, full: int) -> None:
    count = iter(range(100))

    def replies(ask: Ask) -> Completion:
        if next(count) == full:
            return said("", "context")
        return chosen("tie") if ask.role == "evaluator" else said("text")

    baseline = write(fastchat("x", "y"))
    asks, record = compare(question(), baseline, replies)
    states = [turn["status"] for turn in record["turns"]]
    assert states == [["unanswered"] * 2, ["judged", "unanswered"], ["evaluator_context", "judged"]][full]
    assert len(asks) == [1, 4, 6][full]
    assert record["score"] == (None if full == 0 else 0.5)
    summary = build("pairwise", {"baseline": str(baseline)}, seed=0).summarise([record])
    assert (summary["unanswered"], summary["evaluator_context"]) == [(2, 0), (1, 0), (0, 1)][full]
    assert summary["missing_verdicts"] == 0


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("speaker", ["candidate", "baseline", "question"])
def test_hostile_text_never_changes_the_structure_of_a_prompt(write: Write, name: str, speaker: str) -> None:
    def asks_with(text: str) -> list[Ask]:
        replies = scripted(
            candidate=[said(text if speaker == "candidate" else "r")], evaluator=[chosen("B"), chosen("A")] * 2
        )
        answer = text if speaker == "baseline" else "b"
        asked = question(followups=[text if speaker == "question" else "q"])
        asks, record = compare(asked, write(fastchat(answer, answer)), replies)
        assert record["score"] == 0.0
        return asks[2:]

    for attacked, plain in zip(asks_with(HOSTILE[name]), asks_with("harmless"), strict=True):
        assert skeleton(attacked) == skeleton(plain)
        text_of(attacked).encode()
        if speaker != "question":
            assert len(text_of(attacked)) < 80_000


@pytest.mark.parametrize("name", HOSTILE)
def test_a_verdict_in_a_reply_is_none(write: Write, name: str) -> None:
    replies = scripted(candidate=[said(HOSTILE[name])], evaluator=[said("I can't say.")])
    _, record = compare(question(), write(fastchat("x", HOSTILE[name])), replies, verdict="free")
    assert record["score"] is None


def test_three_layouts_of_a_baseline_say_the_same(write: Write) -> None:
    asked = question()
    _, record = sit(asked, scripted(candidate=[said("ONE"), said("TWO")], evaluator=[rating(5)]))
    files = [
        write(fastchat("ONE", "TWO"), name="a.jsonl"),
        write(fastchat("ONE", "TWO", question_id="101"), name="a.json"),
        write({**record, "half": "leaked"}, name="records.jsonl"),
    ]
    for file in files:
        assert read_baseline(file).answers_to(asked) == ("ONE", "TWO")
    single = make_item(benchmark="t", split="", subject="s", question=" Who? ", choices=[], answer="")
    for name in ("outputs.json", "outputs.jsonl"):
        file = write({"instruction": "Who?", "output": "Me.", "generator": "m"}, name=name)
        assert read_baseline(file).answers_to(single) == ("Me.",)
    _, record = compare(asked, files[0])
    assert read_baseline(write(record, name="pairs.jsonl")).answers_to(asked) == ("ONE", "REPLY")


def test_a_missing_answer_names_the_first_item_without(write: Write) -> None:
    items = make_items(3)
    baseline = write(*[{"item_id": item.id, "turns": [{"reply": "r"}]} for item in (items[0], items[2])])
    protocol = build("pairwise", {"baseline": str(baseline)}, seed=0)
    with pytest.raises(ValueError, match=f"baseline baseline.jsonl has no answer to item {items[1].id}"):
        protocol.dialogues(items)
    assert len(list(protocol.dialogues([items[0], items[2]]))) == 2
    with pytest.raises(ValueError, match=r"has 1 of 2 answers to item .*question_id '101'"):
        compare(question(), write(fastchat("x")))
    with pytest.raises(ValueError, match=r"has 3 of 2 answers"):
        compare(question(), write(fastchat("x", "y", "z")))
    unanswered = {"item_id": items[0].id, "turns": [{"reply": "", "finish_reason": "context"}]}
    with pytest.raises(ValueError, match=r"has 0 of 1 answers"):
        compare(items[0], write(unanswered))
    with pytest.raises(ValueError, match=r"none with question_id ''"):
        compare(items[0], write(fastchat("x")))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no answers"),
        ([{"id": 1}], r"bad.jsonl:1: no answer of a known layout.*this one has id"),
        ([fastchat("x"), {"question_id": 7}], r'bad.jsonl:2: field "choices" must be a list'),
        ([{"question_id": 7, "choices": []}], r'bad.jsonl:1: field "choices"'),
        ([fastchat("x", 3)], r"bad.jsonl:1: the answers must be a list of texts"),
        ([fastchat("x", question_id=None)], r"bad.jsonl:1: field 'question_id' is None"),
        ([fastchat("x"), fastchat("y")], r"bad.jsonl:2: another answer to question_id '101' than at .*bad.jsonl:1"),
        ([{"instruction": "q"}], r"bad.jsonl:1: field 'output' is missing"),
        ([{"item_id": "a", "turns": None}], r"bad.jsonl:1: the answers must be a list"),
        ([{"item_id": "a", "turns": [{}]}], r"bad.jsonl:1: the answers must be a list"),
        ([{"item_id": "a", "turns": ["x"]}], r"bad.jsonl:1: the answers must be a list"),
        ([[1]], r"bad.jsonl:1: a row must be a JSON object"),
    ],
)
def test_a_malformed_baseline_is_refused(write: Write, rows: list[Any], message: str) -> None:
    file = write(*rows, name="bad.jsonl")
    with pytest.raises(ValueError, match=message):
        build("pairwise", {"baseline": str(file)}, seed=0)


def test_a_baseline_must_be_given_and_readable(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pairwise.baseline: missing; give the file"):
        build("pairwise", {}, seed=0)
    with pytest.raises(ValueError, match=r"pairwise.baseline: .*none.jsonl can't be read: No such file"):
        build("pairwise", {"baseline": str(tmp_path / "none.jsonl")}, seed=0)
    with pytest.raises(ValueError, match=r"can't be read"):
        build("pairwise", {"baseline": str(tmp_path)}, seed=0)
    (tmp_path / "latin.jsonl").write_bytes(b'{"instruction": "\xe9"}')
    with pytest.raises(ValueError, match=r"latin.jsonl:1: byte 0xe9 is not UTF-8"):
        build("pairwise", {"baseline": str(tmp_path / "latin.jsonl")}, seed=0)


def test_the_baseline_is_part_of_what_is_hashed(write: Write) -> None:
    file = write(fastchat("x", "y"))
    before = build("pairwise", {"baseline": str(file)}, seed=0).prompt_hashes()
    assert before["baseline:baseline.jsonl"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert set(before) == {
        "mt_bench_candidate_plain.jinja",
        "pairwise_evaluator_system.jinja",
        "pairwise_evaluator.jinja",
        "baseline:baseline.jsonl",
    }
    after = build("pairwise", {"baseline": str(write(fastchat("x", "z")))}, seed=0).prompt_hashes()
    assert [name for name in before if before[name] != after[name]] == ["baseline:baseline.jsonl"]


def test_summary(write: Write) -> None:
    items = make_items(4, ("physics", "law"))
    baseline = write(*[{"item_id": item.id, "turns": [{"reply": "BASE"}]} for item in items])
    scripts = [("A", "B"), ("B", "A"), ("A", "A"), ("B", "-")]  # win, loss, inconsistent, missing
    records = [
        compare(item, baseline, judged(*script), retries=0)[1] for item, script in zip(items, scripts, strict=True)
    ]
    protocol = build("pairwise", {"baseline": str(baseline)}, seed=1)
    summary = protocol.summarise(json.loads(json.dumps(records)))
    assert (summary["n"], summary["wins"], summary["losses"], summary["ties"]) == (4, 1, 1, 1)
    assert (summary["inconsistent"], summary["missing_verdicts"], summary["unscored"]) == (1, 1, 1)
    assert summary["win_rate"] == pytest.approx((1 + 0.5 * 1) / 3)
    assert summary["win_rate_interval"] == pytest.approx([0, 1])
    # verdicts: A B, B A, A A, B
    assert summary["position"] == {"first": 4, "second": 3, "tie": 0, "first_share": 4 / 7}
    assert summary["orders"]["candidate_first"]["win_rate"] == pytest.approx(2 / 4)
    assert summary["orders"]["baseline_first"]["win_rate"] == pytest.approx(1 / 3)
    assert summary["orders"]["baseline_first"]["n"] == 3
    assert summary["categories"]["law"] == {
        "win_rate": 0.0,
        "interval": None,
        "interval_note": "1 of 1 at the floor: up to 98 % may lie elsewhere",
        "n": 1,
    }
    assert summary["categories"]["physics"]["win_rate"] == 0.75
    assert summary["turns"]["1"]["n"] == 3
    assert "length_control" not in summary
    assert summary["baseline"]["file"] == "baseline.jsonl"
    assert json.loads(json.dumps(summary)) == summary

    controlled = build("pairwise", {"baseline": str(baseline), "length_controlled": True}, seed=1).summarise(records)
    assert controlled["length_controlled_win_rate"] is None
    assert controlled["length_control"]["reason"] == "3 comparisons; it takes 10"


def test_two_turns_count_as_one_item(write: Write) -> None:
    baseline = write(fastchat("BASE 1", "BASE 2"))
    _, record = compare(question(), baseline, judged("A", "B", "tie", "tie"))
    assert [turn["result"] for turn in record["turns"]] == ["win", "tie"]
    summary = build("pairwise", {"baseline": str(baseline)}, seed=0).summarise([record])
    assert (summary["win_rate"], summary["win_rate_interval"]) == (0.75, None)
    assert summary["win_rate_interval_note"] == "1 of 1 at 0.75: up to 98 % may lie elsewhere"
    assert (summary["turns"]["1"]["win_rate"], summary["turns"]["2"]["win_rate"]) == (1.0, 0.5)
    assert summary["orders"]["candidate_first"]["win_rate"] == 0.75


def test_summary_of_nothing(write: Write) -> None:
    options = {"baseline": str(write(fastchat("x"))), "length_controlled": True}
    summary = build("pairwise", options, seed=0).summarise([])
    assert (summary["n"], summary["win_rate"], summary["win_rate_interval"]) == (0, None, None)
    assert summary["position"]["first_share"] is None
    assert summary["length_controlled_win_rate"] is None


def test_reported_lengths_are_those_compared(write: Write) -> None:
    """Ten items, candidate longer in half of them: 4 of 5 won there, 2 of 5 where it is shorter."""
    items = make_items(10)
    baseline = write(*[{"item_id": item.id, "turns": [{"reply": "12345"}]} for item in items])
    records = []
    for i, item in enumerate(items):
        reply = said("123456789" if i < 5 else "1")
        won = i in (0, 1, 2, 3, 5, 6)
        verdicts = [chosen("A"), chosen("B")] if won else [chosen("B"), chosen("A")]
        records.append(compare(item, baseline, scripted(candidate=[reply], evaluator=verdicts))[1])
    options = {"baseline": str(baseline), "length_controlled": True}
    summary = build("pairwise", options, seed=0).summarise(records)
    assert summary["win_rate"] == pytest.approx(0.6)
    assert summary["length_controlled_win_rate"] == pytest.approx(0.6002, abs=1e-4)
    assert json.loads(json.dumps(summary)) == summary


def test_length_control_by_hand() -> None:
    """Two lengths, 4 of 5 won and 2 of 5: at the maximum of the log-likelihood less 5 gamma^2 its slopes are 0."""
    results = [1, 1, 1, 1, 0, 1, 1, 0, 0, 0]
    found = length_control(results, [30] * 5 + [-30] * 5)
    assert found.win_rate is not None
    assert found.gamma is not None
    theta, t = math.log(found.win_rate / (1 - found.win_rate)), math.tanh(30 / (30 * math.sqrt(10 / 9)))
    longer, shorter = (1 / (1 + math.exp(-(theta + sign * found.gamma * t))) for sign in (1, -1))
    assert 5 * (0.8 - longer) + 5 * (0.4 - shorter) == pytest.approx(0, abs=1e-6)
    assert t * (5 * (0.8 - longer) - 5 * (0.4 - shorter)) == pytest.approx(2 * 5 * found.gamma, abs=1e-5)
    assert found.interval is not None
    assert found.interval.low < found.win_rate < found.interval.high  # type: ignore[operator]
    mirrored = length_control([1 - y for y in results], [-30] * 5 + [30] * 5)
    assert mirrored.win_rate == pytest.approx(1 - found.win_rate)  # type: ignore[operator]


def test_length_control_takes_away_what_length_alone_won() -> None:
    """Wins where longer, losses where shorter, by the same odds: equal once lengths are."""
    found = length_control([1, 1, 1, 1, 0, 0, 0, 0, 0, 1], [9] * 5 + [-9] * 5)
    assert found.win_rate == pytest.approx(0.5)
    uneven = length_control([1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1], [9] * 10 + [-9] * 2)
    assert uneven.win_rate is not None
    assert 2 / 3 < uneven.win_rate < 0.75  # raw 0.75; without the prior 2/3, which twelve comparisons do not bear out
    assert uneven.gamma is not None
    assert uneven.gamma > 0


def test_length_control_comes_close_to_a_known_truth() -> None:
    """20 models of known strength whose replies differ in length by their own habits; the judge favours length. Mean
    distance from the truth in points: raw above 4, length-controlled below 2."""
    rng = np.random.default_rng(8)
    raw, controlled = [], []
    for theta, longer in zip(rng.normal(-0.5, 1.0, 20), rng.normal(0.4, 0.5, 20), strict=True):
        d = rng.normal(longer, 1.0, 800) * 500
        p = 1 / (1 + np.exp(-(theta + 1.2 * np.tanh(d / d.std(ddof=1)))))
        won = (rng.random(800) < p).astype(float)
        found = length_control(won.tolist(), d.tolist())
        assert found.win_rate is not None
        truth = 1 / (1 + math.exp(-theta))
        raw.append(100 * abs(won.mean() - truth))
        controlled.append(100 * abs(found.win_rate - truth))
    assert np.mean(raw) > 4
    assert np.mean(controlled) < 2


def test_length_control_refuses_to_reach_beyond_what_was_seen() -> None:
    found = length_control([1, 0] * 50, [*range(1, 98), -1, -2, -3])
    assert found.reason == "97% of the replies are longer: equal lengths lie outside most of what was seen"
    assert length_control([1, 0] * 50, [*range(1, 96), -1, -2, -3, -4, -5]).win_rate is not None


def test_length_control_of_ties_and_of_equal_lengths() -> None:
    ties = length_control([0.5] * 10, list(range(10)))
    assert (ties.win_rate, ties.interval, ties.gamma) == (0.5, (0.5, 0.5), 0.0)
    equal = length_control([1, 1, 1, 0.5, 0, 0, 0, 0, 0, 0], [0] * 10)
    assert equal.win_rate == pytest.approx(0.35)
    assert equal.gamma is None


@pytest.mark.parametrize(
    ("results", "differences", "reason"),
    [
        ([1, 0] * 4 + [1], list(range(9)), "9 comparisons; it takes 10"),
        ([], [], "0 comparisons"),
        ([1] * 12, list(range(12)), "all comparisons were won"),
        ([0] * 12, [0] * 12, "all comparisons were lost"),
        ([1, 0] * 6, [7] * 12, "by the same amount"),
        ([0] * 6 + [1] * 6, list(range(12)), "alone separates"),
        ([1] * 6 + [0] * 6, list(range(12)), "alone separates"),
        ([0] * 5 + [0.5] + [1] * 6, list(range(12)), "alone separates"),
    ],
)
def test_length_control_says_why_it_has_no_figure(results: list[float], differences: list[float], reason: str) -> None:
    found = length_control(results, differences)
    assert found.win_rate is None
    assert found.interval is None
    assert reason in found.reason


def test_length_control_refuses_what_is_no_result() -> None:
    with pytest.raises(ValueError, match="2 results and 1 differences"):
        length_control([1, 0], [1])
    for results, differences in (([1.5] * 10, [0] * 10), ([math.nan] * 10, [0] * 10), ([1] * 10, [math.inf] * 10)):
        with pytest.raises(ValueError, match="must lie in"):
            length_control(results, differences)


def test_the_first_request_is_a_chat(write: Write, item: Item) -> None:
    asks, _ = compare(item, write({"item_id": item.id, "turns": [{"reply": "BASE"}]}))
    assert [type(ask.prompt) for ask in asks] == [tuple] * 3
    assert isinstance(asks[0].prompt[0], Message)
