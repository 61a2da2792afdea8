"""The builder, driven by hand with imaginary agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.asking.until_read import together
from evaluation.benchmarks import load
from evaluation.items import Item, make_item
from evaluation.probing import agent
from evaluation.probing.build import Probing, ProbingOptions
from evaluation.probing.version import CHOICE_CHAIN, QUESTION_CHAIN, SETS, Version, stages
from evaluation.registry import build_builder as build
from serving.engines.transformers_engine import TransformersBackend
from serving.model.spec import ModelSpec
from serving.records import Ask, Completion, Sampling
from tests.evaluation.exam_driver import drive, said

POTATO = make_item(
    benchmark="t",
    split="test",
    subject="biology",
    question="Which movement makes a slice of potato in salty water limp?",
    choices=["Water left the cells", "Water entered the cells", "Starch left the cells", "Oxygen entered the cells"],
    answer="A",
    reason="Osmosis.",
)
EGGS = make_item(
    benchmark="t",
    split="test",
    subject="math",
    question="Ann has 12 eggs and eats 2 of them each day. How many days do they last?",
    choices=[],
    answer="6",
    form="number",
)
BBH = make_item(
    benchmark="bbh",
    split="test",
    subject="dates",
    question="Today is Christmas Eve of 1937. What is the date tomorrow?\nOptions:\n(A) 12/11/1937\n(B) 12/25/1937",
    choices=[],
    answer="(B)",
    form="option",
)
YES, NO = '{"comment": "fine", "verdict": "yes"}', '{"comment": "another answer", "verdict": "no"}'


def principle_of(ask: Ask) -> str:
    last = str(ask.prompt[-1].content)  # type: ignore[union-attr]
    ends = {"new question": "p1", "in other words": "p2", "background": "p4", "new option": "p5"}
    return next(name for text, name in ends.items() if last.rstrip(":").endswith(text))


def agents(replies: dict[str, str], verdict: Callable[[Ask], str] = lambda ask: YES) -> Callable[[Any], Completion]:
    def answer(ask: Ask) -> Completion:
        return said(replies[principle_of(ask)] if ask.role == "prober" else verdict(ask))

    return answer


GOOD = {
    "p1": "In brine a piece of potato goes floppy. What flow is behind that?",
    "p2": "A. Water flowed out of the cells\nB. Water flowed into the cells\nC. Starch came out of the cells\n"
    "D. Oxygen came into the cells",
    "p4": "Cooks have long known what salt does to vegetables.",
    "p5": "Sugar entered the cells",
}


def probe(
    items: list[Item], answer: Callable[[Any], Completion], **options: Any
) -> tuple[Probing, list[dict[str, Any]]]:
    builder = Probing(ProbingOptions(**options), seed=3)
    records = [drive(dialogue, answer)[1] for dialogue in builder.dialogues(items)]
    return builder, json.loads(json.dumps(records))


def test_all_principles_on_a_choice_question() -> None:
    builder, records = probe([POTATO], agents(GOOD), sets=1)
    (item,) = builder.finish([POTATO], records).items
    assert item.question == f"{GOOD['p4']} {GOOD['p1']}"
    assert len(item.choices) == 5
    assert set(item.choices) == {line[3:] for line in GOOD["p2"].split("\n")} | {GOOD["p5"]}
    assert item.answer_text == "Water flowed out of the cells"
    assert (item.source_id, item.subject, item.reason) == (POTATO.id, "biology", "Osmosis.")
    assert item.id != POTATO.id


def test_the_named_sets_share_what_they_have_in_common() -> None:
    assert stages(tuple(SETS), QUESTION_CHAIN) == ("p1", "p4", "p1+p4")
    assert stages(tuple(SETS), CHOICE_CHAIN) == ("p2", "p5", "p2+p5")
    assert stages(("level3",), CHOICE_CHAIN) == ("p5",)
    builder, records = probe([POTATO], agents(GOOD), sets=2, probes=list(SETS))
    built = builder.finish([POTATO], records)
    of = {name: items[0] for name, items in built.sets.items()}
    assert set(of) == {f"{name}{number}" for name in SETS for number in ("", ".set-2")} - {"all"}
    assert of["p1"].question == GOOD["p1"]
    assert of["p1"].choices == POTATO.choices
    assert of["p3"].question == POTATO.question
    assert sorted(of["p3"].choices) == sorted(POTATO.choices)
    assert of["p3"].answer_text == POTATO.answer_text
    assert of["level2"].choices == POTATO.choices
    assert of["level3"].choices == (*POTATO.choices, GOOD["p5"])
    assert of["DK"].answer == "A"
    assert of["LU"].question == GOOD["p1"]


def test_open_questions_get_p1_and_p4_only() -> None:
    replies = {"p1": "Each day Ann eats 2 of her 12 eggs. For how many days are there eggs?", "p4": "Eggs keep well."}
    builder, records = probe([EGGS], agents(replies), sets=1, probes=["all", "p2", "DK", "LU"])
    built = builder.finish([EGGS], records)
    assert built.items[0].question == f"Eggs keep well. {replies['p1']}"
    assert (built.items[0].answer, built.items[0].form) == ("6", "number")
    assert set(built.sets) == {"LU"}
    assert built.summary["sets"]["p2"]["left_out"] == 1


def test_options_in_the_text_stand_as_they_are() -> None:
    replies = {"p1": "It is the day before Christmas in 1937. Which date is tomorrow?\nOptions:\n(A) 1/1/1938",
               "p4": "Calendars hang in many a kitchen."}  # fmt: skip
    builder, records = probe([BBH], agents(replies), sets=1, attempts=1)
    (item,) = builder.finish([BBH], records).items
    assert records[0]["question"]["p1"]["attempts"][0]["result"] == "code: name lost"  # Eve
    replies["p1"] = "Christmas Eve it is, in the year 1937. Which date is tomorrow?"
    builder, records = probe([BBH], agents(replies), sets=1, attempts=1)
    (item,) = builder.finish([BBH], records).items
    assert item.question.endswith("\nOptions:\n(A) 12/11/1937\n(B) 12/25/1937")
    assert item.question.startswith("Calendars hang in many a kitchen. Christmas Eve it is")
    assert item.answer == "(B)"


def test_a_rejected_rewrite_goes_back_with_the_reason() -> None:
    asked: list[Ask] = []

    def answer(ask: Ask) -> Completion:
        asked.append(ask)
        if ask.role == "prober":
            return said([POTATO.question, "In brine a potato goes limp. Why?", GOOD["p1"]][len(probers()) - 1])
        return said(NO if len(asked) < 5 else YES)

    def probers() -> list[Ask]:
        return [ask for ask in asked if ask.role == "prober"]

    _, records = probe([POTATO], answer, sets=1, probes=["p1"])
    attempts = records[0]["question"]["p1"]["attempts"]
    assert [attempt["result"] for attempt in attempts] == ["code: unchanged", "judge", "accepted"]
    assert attempts[1]["reason"] == "another answer"
    assert [ask.sampling.temperature for ask in asked] == [0.7, 0.7, 0.0, 0.7, 0.0]
    assert len({ask.sampling.seed for ask in probers()}) == 3
    prompts = [str(ask.prompt[-1].content) for ask in probers()]  # type: ignore[union-attr]
    assert "turned down" not in prompts[0]
    assert "it is the same as before" in prompts[1]
    assert "| another answer" in prompts[2]
    assert "| In brine a potato goes limp. Why?" in prompts[2]


def test_resampling_tells_the_agent_nothing() -> None:
    asked: list[Ask] = []

    def answer(ask: Ask) -> Completion:
        asked.append(ask)
        return said(GOOD["p1"] if ask.role == "prober" else NO)

    builder, records = probe([POTATO], answer, sets=1, probes=["p1"], attempts=3, on_rejection="resample")
    assert len({str(ask.prompt) for ask in asked if ask.role == "prober"}) == 1
    assert len(records[0]["question"]["p1"]["attempts"]) == 3
    built = builder.finish([POTATO], records)
    assert built.items[0].question == POTATO.question  # the input is kept
    assert built.summary["fallbacks"] == {"p1": {POTATO.id: ["p1"]}}
    stage = built.summary["stages"]["p1"]
    assert (stage["fallback_rate"], stage["mean_attempts"], stage["turned_down"]) == (1.0, 3.0, {"judge": 3})


def test_the_judge_sees_the_original_the_version_before_and_the_answer() -> None:
    seen: list[str] = []

    def verdict(ask: Ask) -> str:
        seen.append(str(ask.prompt[-1].content))  # type: ignore[union-attr]
        return YES

    probe([POTATO], agents(GOOD, verdict), sets=1, probes=["level2"])
    first, second = seen
    assert "Before the last change" not in first
    assert POTATO.question in second
    assert second.count(GOOD["p1"]) == 2  # before, and after with the background
    assert second.count("| Water left the cells") == 3


def test_a_missing_verdict_accepts_nothing() -> None:
    _, records = probe([POTATO], agents(GOOD, lambda ask: "perhaps"), sets=1, probes=["p1"], attempts=1, retries=0)
    assert records[0]["question"]["p1"]["status"] == "fallback"
    assert records[0]["question"]["p1"]["attempts"][0]["result"] == "no verdict: unreadable"


@pytest.mark.parametrize(
    ("principle", "reply", "expected"),
    [
        ("p1", 'Question: "What?"', "What?"),
        ("p1", "```\nWhat?\n```", "What?"),
        ("p1", "| What?", "What?"),
        ("p1", "", "the reply is empty"),
        ("p1", "What?\nA. one\nB. two", "write the question only, without the options"),
        ("p5", "E. Sugar", "Sugar"),
        ("p5", "one\ntwo", "the reply must be one line: the text of the new option"),
        ("p2", "A. a\nB. b\nC. c", "there must be 4 options, one on each line; there are 3"),
        ("p2", "A. a\nC. b\nB. c\nD. d", "the letters must be those of the list, each once, in order"),
    ],
)
def test_reading_a_reply(principle: str, reply: str, expected: str) -> None:
    made = agent.read(principle, Version.of(POTATO), reply, cut=False)
    text = made.reason if isinstance(made, agent.Unreadable) else made.stem if principle == "p1" else made.choices[-1]
    assert text == expected


def test_options_without_letters_are_read_by_line() -> None:
    made = agent.read("p2", Version.of(POTATO), "- one\n- two\n3. three\nfour", cut=False)
    assert isinstance(made, Version)
    assert made.choices == ("one", "two", "three", "four")
    assert isinstance(agent.read("p2", Version.of(POTATO), "a\nb\nc\nd", cut=True), agent.Unreadable)


def test_options_that_speak_of_others_are_not_extended() -> None:
    item = make_item(benchmark="t", split="", subject="", question="Which?", answer="C",
                     choices=["Cats purr", "Dogs bark", "All of the above"])  # fmt: skip
    builder, records = probe([item], agents({}), sets=1, probes=["DK"])
    assert records[0]["choices"]["p5"]["status"] == "not_applicable"
    assert builder.finish([item], records).summary["sets"]["DK"]["left_out"] == 1


def test_training_data_holds_no_fallback() -> None:
    def verdict(ask: Ask) -> str:
        return NO if "potato" in str(ask.prompt[-1].content) and GOOD["p4"] in str(ask.prompt) else YES  # type: ignore[union-attr]

    builder, records = probe(
        [POTATO], agents(GOOD, verdict), sets=2, probes=["p1", "p4", "p3"], attempts=1, augment=True
    )
    rows = builder.finish([POTATO], records).sets["variants"]
    assert GOOD["p1"] in [row.question for row in rows]
    assert not any(GOOD["p4"] in row.question for row in rows)
    assert all(row.source_id == POTATO.id for row in rows)
    assert len({row.id for row in rows}) == len(rows)
    assert POTATO.id not in {row.id for row in rows}


def test_items_and_options_that_cannot_be_probed() -> None:
    builder = Probing(ProbingOptions(probes=["p2"]), seed=0)
    with pytest.raises(ValueError, match="p2 changes options only"):
        builder.dialogues([EGGS])
    talk = make_item(benchmark="t", split="", subject="", question="Hello", choices=[], answer="", followups=["And?"])
    with pytest.raises(ValueError, match="no key or is a conversation"):
        builder.dialogues([talk])
    with pytest.raises(ValueError, match=r"probing.probes: .*name each set once"):
        build("probing", {"probes": ["p9"]}, seed=0)
    with pytest.raises(ValueError, match="has no record in set 2"):
        Probing(ProbingOptions(probes=["p3"], sets=2), seed=0).finish([POTATO], [
            {"item_id": POTATO.id, "set": 1, "question": {}, "choices": {}}])  # fmt: skip


def test_a_probed_set_is_a_benchmark_file(tmp_path: Any) -> None:
    builder, records = probe([POTATO, EGGS], agents({**GOOD, "p1": "Ann eats 2 a day of 12 eggs. How long?"}), sets=1)
    built = builder.finish([POTATO, EGGS], records)
    file = tmp_path / "probed.jsonl"
    file.write_text("".join(json.dumps(item.to_json()) + "\n" for item in built.items))
    assert load("jsonl", file) == list(built.items)


def test_dialogues_side_by_side() -> None:
    def one(name: str, rounds: int) -> Any:
        heard = []
        for number in range(rounds):
            answer = yield Ask(role="r", prompt=f"{name}{number}", sampling=Sampling(max_tokens=1))
            heard.append(answer)
        return heard

    running = together([one("a", 2), one("b", 1), one("c", 0)])
    first = next(running)
    assert [ask.prompt for ask in first] == ["a0", "b0"]  # type: ignore[union-attr]
    second = running.send(["x", "y"])
    assert [ask.prompt for ask in second] == ["a1"]  # type: ignore[union-attr]
    with pytest.raises(StopIteration) as end:
        running.send(["z"])
    assert end.value.value == [["x", "z"], ["y"], []]


@pytest.mark.real
def test_a_real_model_as_both_agents(smollm: Path) -> None:
    """Whatever a weak model writes: every attempt has a result, and the item stays whole."""
    backend = TransformersBackend(ModelSpec(path=str(smollm), engine="transformers"))

    def answer(ask: Ask) -> Completion:
        return backend.generate([ask.request()])[0]

    builder, records = probe([POTATO], answer, sets=1, attempts=1, prober_tokens=24, comment_length=8, probes=["p5"])
    (attempt,) = records[0]["choices"]["p5"]["attempts"]
    assert attempt["result"]
    built = builder.finish([POTATO], records)
    (item,) = built.items
    accepted = attempt["result"] == "accepted"
    assert item.choices[:4] == POTATO.choices
    assert len(item.choices) == 4 + accepted
    assert (POTATO.id in built.summary["fallbacks"]["p5"]) == (not accepted)
