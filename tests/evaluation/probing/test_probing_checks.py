from __future__ import annotations

import pytest

from evaluation.probing.checks import (
    check_choices,
    check_context,
    check_names,
    check_new_choice,
    check_question,
    check_unique,
    names,
)

TRAIN = "A train covers 120 km in 2 hours. How far does it go in half an hour?"


def question(after: str, before: str = TRAIN, *, exact: bool = False, max_growth: float = 3.0) -> str | None:
    fault = check_question(before, after, exact=exact, max_growth=max_growth)
    return None if fault is None else fault.kind


def choices(after: list[str], before: list[str], answer: int = 0) -> str | None:
    fault = check_choices(before, after, answer=answer, max_growth=3.0)
    return None if fault is None else fault.kind


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ("In two hours a train goes 120 kilometres. What distance is that in half an hour?", None),
        ("In 2 h a train goes one hundred and twenty km. What distance is that in 0.5 hours?", None),
        ("In three hours a train goes 120 km. What distance is that in half an hour?", "number changed"),
        ("A train goes 120 km in 2 hours. What distance is that in a while?", "number changed"),
        ("A train goes 120 miles in 2 hours. What distance is that in half an hour?", "unit changed"),
        ("A train goes 120 in 2 hours. What distance is that in half an hour?", "unit changed"),
        ("A train with 8 coaches goes 120 km in 2 hours. How far does it go in half an hour?", "new number"),
        (TRAIN.lower(), "unchanged"),
        ("  ", "empty"),
        (TRAIN + " now" * 100, "too long"),
    ],
)
def test_numbers_and_units_of_a_question(after: str, kind: str | None) -> None:
    assert question(after) == kind


def test_a_sign_and_a_share() -> None:
    assert question("By how much did it rise from 8 to 5 degrees?", "It rose from -8 to 5 degrees. By how much?") == (
        "number changed"
    )
    assert question("It was eight degrees below zero, then 5. What is the rise in degrees?",
                    "It rose from -8 to 5 degrees. By how much?") is None  # fmt: skip
    assert question("Half of the 40 pupils left. How many stayed?", "50% of 40 pupils leave. How many stay?") is None


def test_the_language_stays() -> None:
    german = "Was ist der Name von dem Stern, der die Erde mit Licht und Wärme versorgt, und wie alt ist er?"
    assert question(german, "What is the name of the star that gives light and warmth to the Earth?") == (
        "language changed"
    )
    assert question("什么星给地球光和热?", "Which star gives light to the Earth?") == "language changed"


def test_names_and_slots_of_an_exact_question() -> None:
    before = "Today, Susan went to the shop. Between what times?\nWe know that:\nJohn saw Susan from 7am to 11am."
    assert names(before) == {"Susan"}  # John begins a line: it may be any word
    kept = "When could Susan have gone to the shop today?\nThis is known:\nFrom 7am to 11am, John saw Susan."
    assert question(kept, before, exact=True) is None
    assert question(kept.replace("7am", "7pm"), before, exact=True) == "unit changed"
    assert question(kept.replace("Susan", "Sarah"), before, exact=True) == "name lost"
    assert check_names("He met Ann.", "He met Ann and Bob.") == ("new name", "the name Bob was not there before")


def test_formulas_and_lists_stand_letter_for_letter() -> None:
    before = "not ( True ) and ( True ) is"
    assert question("What is the value of not ( True ) and ( True )?", before) is None
    assert question("What is the value of not ( False ) and ( True )?", before) == "part lost"
    before = "Sort the following words alphabetically: List: syndrome therefrom apple"
    assert question("Put these in the order of the alphabet. List: syndrome therefrom apple", before) is None
    assert question("Put these in the order of the alphabet. List: syndrome apple", before) == "part lost"


def test_options_are_reworded_in_their_places() -> None:
    before = ["Water left the cells", "Water entered the cells", "Starch left the cells"]
    good = ["Water went out of the cells", "Water came into the cells", "Starch went out of the cells"]
    assert choices(good, before) is None
    assert choices(good[:2], before) == "option count"
    assert choices([good[0], good[0], good[2]], before) == "duplicate option"
    assert choices([good[0], " ", good[2]], before) == "empty"
    assert choices([before[1], good[1], good[2]], before, answer=0) == "key lost"
    assert choices([good[0], before[0], good[2]], before, answer=0) == "options moved"
    assert choices(before, before) == "unchanged"
    assert choices(["Water"] * 2, ["Water", "Water"]) is None  # the publisher's own duplicate


def test_options_that_cannot_be_said_differently() -> None:
    assert choices(["12", "15"], ["12", "14"]) == "fixed option"
    assert choices(["12 metres", "15 metres"], ["12 m", "15 m"]) == "fixed option"  # no word of three letters
    assert choices(["A dozen eggs", "15 eggs in all"], ["12 eggs", "14 eggs"]) == "number changed"
    assert choices(["Rain water", "Whatever is said"], ["Water", "All of the above"]) == "fixed option"
    four = ["Water", "Salt", "Sand", "Both A and C"]
    assert choices(["Rain water", "Salt", "Sand", "Each of A and C"], four) == "fixed option"
    assert choices(["Oxygen", "Red light"], ["Oxygen", "Red light"]) is None  # two words at most: all may stay


def test_one_more_option() -> None:
    before = ["Oxygen", "Nitrogen"]

    def added(text: str) -> str | None:
        fault = check_new_choice(before, text, max_growth=3.0)
        return None if fault is None else fault.kind

    assert added("Argon") is None
    assert added("oxygen.") == "duplicate option"
    assert added("None of the above") == "refers to others"
    assert added("Both A and B") == "refers to others"
    assert added("") == "empty"
    assert added("x" * 61) == "too long"


def test_background_gives_nothing_away() -> None:
    def context(text: str, *, numeric: bool = False) -> str | None:
        fault = check_context("Which gas burns with a pop?", text, key="Hydrogen", numeric=numeric, max_growth=5.0)
        return None if fault is None else fault.kind

    assert context("Gases are often tested in school laboratories, 30 pupils at a time.") is None
    assert context("Gases are often tested, 30 pupils at a time.", numeric=True) == "new number"
    assert context("Teachers like hydrogen for its tricks.") == "key given away"
    assert context("Which gas burns with a pop?") == "unchanged"
    assert context("Who has never heard it?") == "new question"


def test_empty_and_repeated_options() -> None:
    fault = check_unique(["a", "B", "b "])
    assert fault is not None
    assert fault.kind == "duplicate option"
    assert check_unique(["a", "b"]) is None


def test_a_name_may_be_written_out() -> None:
    assert check_names("They married on Jan 2.", "The wedding was on the second of January.") is None
    assert check_names("They married on Jan 2.", "The wedding was on the second of June.") is not None
