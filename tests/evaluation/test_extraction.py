from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.extraction import exact_match, extract_choice, normalise

PLANETS = ["Mars", "Venus", "Earth", "Pluto"]


@pytest.mark.parametrize(
    "reply",
    [
        "B",
        " b ",
        "B.",
        "(B)",
        "[b]",
        "**B**",
        "B) Venus",
        "B. Venus",
        "B. Venus\n\nIt is hot there.",
        "**B.** Venus",
        "(B) Venus",
        "B: Venus",
        "B - Venus",
        "Answer: B",
        "Answer: b",
        "Answer: (B)",
        "**Answer:** B",
        "The answer is B",
        "The answer is B.",
        "The answer is **B**.",
        "the correct answer is B, Venus.",
        "The answer is B because A has no air.",
        "The answer is B, not C.",
        "I believe the answer is B and here is why",
        "Option B",
        "The answer is Venus.",
        "Venus",
        "venus.",
        '"Venus"',
        "So \\boxed{B}",
        "\uff22",
        "Let me think.\nB",
    ],
)
def test_a_reply_that_names_b(reply: str) -> None:
    assert extract_choice(reply, PLANETS) == "B"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "I don't know",
        "B or C",
        "B) or C)",
        "B, C",
        "B/C",
        "A and B are right",
        "The answer is B or C",
        "The answer is B, C",
        "The answer is not B",
        "The answer isn't B",
        "The answer is a planet",
        "The answer is A good question",
        "A planet is round",
        "A. Mars\nB. Venus\nC. Earth\nD. Pluto",
        "E",
        "E. None",
        "Answer with A, B, C or D and its text.",
        "B. Mars",
        "The answer is B, Mars",
        "Venus or Mars",
        "It is not Venus",
        "Because",
        "Cab",
    ],
)
def test_a_reply_that_names_none_or_several(reply: str) -> None:
    assert extract_choice(reply, PLANETS) is None


@pytest.mark.parametrize("reply", ["The answer is B. No, the answer is C.", "Answer: B\nAnswer: C", "B.\n\nAnswer: C"])
def test_the_last_announcement_wins(reply: str) -> None:
    assert extract_choice(reply, PLANETS) == "C"


def test_a_is_a_letter_and_an_article() -> None:
    options = ["A mirror", "A lens"]
    assert extract_choice("A", options) == "A"
    assert extract_choice("A. A mirror", options) == "A"
    assert extract_choice("A mirror", options) == "A"
    assert extract_choice("A lens", options) == "B"
    assert extract_choice("The answer is A", options) == "A"
    assert extract_choice("The answer is A because it reflects", options) == "A"
    assert extract_choice("The answer is A mirror", options) == "A"
    assert extract_choice("The answer is A lens", options) == "B"


def test_options_that_look_alike_after_normalisation_need_a_letter() -> None:
    assert extract_choice("x2", ["x\u00b2", "x2", "y"]) is None
    assert extract_choice("B. x2", ["x\u00b2", "x2", "y"]) == "B"
    assert extract_choice("0.5", [".5", "0.5", "5"]) == "B"
    assert extract_choice(".5", [".5", "0.5", "5"]) == "A"


@given(st.text(max_size=300), st.lists(st.text(max_size=20), min_size=2, max_size=26))
def test_it_never_crashes_and_only_names_an_option(reply: str, choices: list[str]) -> None:
    assert extract_choice(reply, choices) in (None, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(choices)])


@pytest.mark.parametrize(
    "text", ["answer " * 15_000, "B " * 50_000, "(" * 100_000, "A. " * 30_000, "*" * 100_000 + "B"]
)
def test_a_hundred_kilobytes_are_read_in_time(text: str) -> None:
    extract_choice(text, PLANETS)


def test_exact_match() -> None:
    assert exact_match(' The Answer is: "Paris". ', "paris")
    assert exact_match("answer machine", "Answer machine")
    assert not exact_match("Paris or Rome", "Paris")
    assert not exact_match("", "Paris")
    assert normalise("  A\u00a0B. ") == "a b"


ECHO = "A. red\nB. green\nC. blue\nD. grey"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (f"{ECHO}\n\nThe answer is B.", "B"),
        (f"{ECHO}\nAnswer: C. blue", "C"),
        (f"{ECHO}\n\nB. green", None),  # the last line might be the list's, given twice: no guess
        (ECHO, None),
        ("A. red\nB. green\n\nThe answer is B.", "B"),
        ("A. red\nB. green", None),  # part of the list: perhaps two answers
        (f"{ECHO}\nThe answer is B or C.", None),
    ],
)
def test_a_repeated_list_of_options_is_no_answer_and_hides_none(reply: str, expected: str | None) -> None:
    assert extract_choice(reply, ["red", "green", "blue", "grey"]) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("答案：B", "B"),
        ("答案是B。", "B"),
        ("正确答案为 **B**", "B"),
        ("综上所述，选B。", "B"),
        ("因此选B：火星", "B"),
        ("答案是B，因为A错误。", "B"),
        ("答案是：火星", "B"),
        ("选B还是选C？", None),
        ("答案是B、C", None),
        ("答案是B或C", None),
        ("答案不是B", None),
        ("答案是B。\n所以选C。", "C"),
        ("选项B错误，选项C正确", "C"),
    ],
)
def test_a_chinese_reply(reply: str, expected: str | None) -> None:
    assert extract_choice(reply, ["金星", "火星", "木星", "土星"]) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Option B is wrong because it is too hot.", None),
        ("Option B is not correct.", None),
        ("Option B (Venus) is clearly incorrect.", None),
        ("Choice B can't be it, so the answer is C.", "C"),
        ("Option A is wrong. Option B is wrong. Option C is right.", "C"),
        ("Option B is correct.", "B"),
        ("The answer is B, not C.", "B"),
    ],
)
def test_an_option_that_is_only_denied_is_not_named(reply: str, expected: str | None) -> None:
    assert extract_choice(reply, PLANETS) == expected
