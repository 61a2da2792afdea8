"""Marks and choices: read leniently in form, never in content."""

from __future__ import annotations

import json

import pytest

from evaluation.lm_examiner import marking

FULL = {"accuracy": 3, "coherence": 3, "factuality": 3, "comprehensiveness": 3, "overall": 5}
LINES = "accuracy: 3\ncoherence: 2\nfactuality: 3\n{}: 1\noverall: 4"


@pytest.mark.parametrize("name", ["comprehensive", "comprehensiveness", "Comprehensiveness score"])
def test_five_lines(name: str) -> None:
    read = marking.read_free_marks(LINES.format(name))
    assert read is not None
    assert read.marks == {"accuracy": 3, "coherence": 2, "factuality": 3, "comprehensiveness": 1, "overall": 4}


@pytest.mark.parametrize(
    "text",
    [
        "**Accuracy:** 3/3\n- Coherence: 2\n* factuality = 3\n4) comprehensive: 1.\nOverall score: 4 out of 5",
        "1. Accuracy: [3]\n2. Coherence: 2\n3. Factuality: 3 (all true)\n4. Comprehensive： 1\nOVERALL: 4",
    ],
)
def test_decorated_lines(text: str) -> None:
    read = marking.read_free_marks(text)
    assert read is not None
    assert list(read.marks.values()) == [3, 2, 3, 1, 4]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure! This is a great answer.",
        LINES.format("comprehensiveness").replace("accuracy: 3", "accuracy: 7"),
        LINES.format("comprehensiveness").replace("overall: 4", "overall: 6"),
        LINES.format("comprehensiveness").replace("overall: 4", "overall: 0"),
        LINES.format("comprehensiveness").replace("overall: 4", "overall: 4.5"),
        LINES.format("comprehensiveness").replace("overall: 4", "overall: 4/10"),
        LINES.format("comprehensiveness").replace("overall: 4", "overall: good"),
        LINES.format("comprehensiveness").replace("overall: 4", "overall: -1"),
        LINES.format("comprehensiveness").replace("coherence: 2\n", ""),  # a missing dimension
        LINES.format("comprehensiveness") + "\noverall: 5",  # said twice, differently
        "| " + LINES.format("comprehensiveness").replace("\n", "\n| "),  # the answer's own marks
    ],
)
def test_what_is_no_verdict(text: str) -> None:
    assert marking.read_free_marks(text) is None


def test_said_twice_alike_is_one_verdict_and_a_cut_word_is_none() -> None:
    text = LINES.format("comprehensiveness")
    assert marking.read_free_marks(text + "\noverall: 4") == marking.read_free_marks(text)
    assert marking.read_free_marks(text, cut=True) is None


def test_structured_marks() -> None:
    assert marking.read_marks(json.dumps(FULL)) == marking.Marks(marks=FULL)
    with_comment = marking.read_marks(json.dumps({"comment": "fine", **FULL}))
    assert with_comment is not None
    assert with_comment.comment == "fine"
    for same in (float, str, lambda mark: f"{mark}.0"):
        quoted = json.dumps({name: same(mark) for name, mark in FULL.items()})
        assert marking.read_marks(quoted) == marking.Marks(marks=FULL)
    for broken in (
        {**FULL, "overall": 7},
        {**FULL, "accuracy": 0},
        {**FULL, "accuracy": 2.5},
        {**FULL, "accuracy": "3/5"},
        {**FULL, "accuracy": True},
        {key: value for key, value in FULL.items() if key != "factuality"},
        {**FULL, "comment": 3},
        [FULL],
    ):
        assert marking.read_marks(json.dumps(broken)) is None
    assert marking.read_marks(json.dumps(FULL)[:-3]) is None
    assert marking.read_marks('{"overall": 1, ' + json.dumps(FULL)[1:]) is None  # a key twice
    assert marking.read_marks("[" * 100_000) is None


@pytest.mark.parametrize("length", [0, 40])
def test_the_schema_bounds_its_tokens(length: int) -> None:
    longest = {**({"comment": "x" * length} if length else {}), **marking.MAXIMA}
    assert len(json.dumps(longest)) < marking.marks_fields(length).tokens()
    assert list(marking.marks_fields(length).schema()["properties"]) == list(longest)
    assert len(json.dumps({"comment": "x" * length, "choice": "Response 2"})) < marking.choice_fields(length).tokens()


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("Response 1", 1),
        ("response 2.", 2),
        ("**Response 2**", 2),
        ("I prefer Response 1, for it is complete.", 1),
        ("Both Response 1 and Response 2 are fine.", None),
        ("Response 1 is better than Response 2.", 1),
        ("Response 2 was clearly the better one; Response 1 is short.", 2),
        ("Response 1 is better. No: Response 2 is better.", None),
        ("Response 1 is short, Response 2 is long.\nChoice: Response 2", 2),
        ("Choice: 1\nChoice: 2", None),
        ("Choice: Response 1 or Response 2", None),
        ("| Response 1", None),
        ("Response 3", None),
        ("Response 12", None),
        ("Neither.", None),
        ("", None),
    ],
)
def test_free_choices(text: str, choice: int | None) -> None:
    assert marking.read_free_choice(text) == choice


def test_structured_choices() -> None:
    assert marking.read_choice('{"choice": "Response 2"}') == 2
    assert marking.read_choice('{"comment": "", "choice": "Response 1"}') == 1
    for quoted in ('{"choice": 1}', '{"choice": "1"}', '{"choice": "response 1"}', '{"choice": 1.0}'):
        assert marking.read_choice(quoted) == 1
    for broken in ('{"choice": "Response 3"}', '{"choice": 3}', '{"choice": "Resp', "[]", '{"choice": ["Response 1"]}'):
        assert marking.read_choice(broken) is None
    assert marking.read_free_choice("Response 1 is good, Response 2", cut=True) == 1
