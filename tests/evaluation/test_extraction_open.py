"""Open questions: numbers, labels of options in the question, words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.extraction import extract_answer, first_turn, is_right
from evaluation.extraction.numbers import extract_number
from evaluation.extraction.spelling import plain_number, value_of
from evaluation.formats import chat_answer, chat_question, plain_answer
from evaluation.items import Form, Item, make_item


def open_item(answer: str, question: str = "Q?", form: Form = "text", reason: str = "") -> Item:
    return make_item(
        benchmark="t", split="", subject="", question=question, choices=(), answer=answer, form=form, reason=reason
    )


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("18", "18"),
        (" 18.", "18"),
        ("18.0", "18"),
        ("0018", "18"),
        ("She makes 9 * 2 = $18 every day.", "18"),
        ("$1,234.50", "1234.5"),
        ("1,234,567 people", "1234567"),
        ("-5", "-5"),
        ("\u22125", "-5"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("x=-5", "-5"),
        ("+5", "5"),
        ("\n- 5 apples", "5"),
        (".5", "0.5"),
        ("$.50", "0.5"),
        ("...18", "18"),
        ("Answer:18", "18"),
        ("18 €", "18"),
        ("18€", "18"),
        ("USD18", "18"),
        ("\\$18", "18"),
        ("3.5%", "3.5"),
        ("18\\%", "18"),
        ("18kg", "18"),
        ("5pm", "5"),
        ("**18**", "18"),
        ("She makes **$18** a day.", "18"),
        ("It is *18*.", "18"),
        ("* 18 eggs", "18"),
        ("(18)", "18"),
        ("1/2", "0.5"),
        ("1/3", "1/3"),
        ("-1/2", "-0.5"),
        ("1 1/2 cups", "1.5"),
        ("\u00bd", "0.5"),
        ("1\u00bd", "1.5"),
        ("\uff11\uff18", "18"),
        ("1\u00a0234", "1234"),
        ("1'234", "1234"),
        ("1{,}234", "1234"),
        ("1e3", "1000"),
        ("16-3-4=9", "9"),
        ("18 g of CO2", "18"),
        ("on day 3 she has 18", "18"),
        ("18 on the 3rd day", "18"),
        ("3 + 15 = 18\n#### 18", "18"),
        ("#### 18 eggs in 3 boxes", "18"),
        ("#### 18 (9 * 2)", "18"),
        ("#### 9 * 2 = 18", "18"),
        ("#### $1,080.00", "1080"),
        ("So \\boxed{18}, which took 2 steps", "18"),
        ("\\boxed{\\frac{1}{2}}", "0.5"),
        ("\\boxed{18 \\text{ eggs}}", "18"),
        ("#### 18\n#### 18", "18"),
        ("#### 18\n#### 20", "20"),
        ("#### Step 1: count\nThere are 18", "18"),
        ("#### 1. Count\n#### 2. Add\nThere are 18", "18"),
        ("-0", "0"),
    ],
)
def test_a_reply_that_gives_a_number(reply: str, number: str) -> None:
    assert extract_number(reply) == number


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "eighteen",
        "CO2",
        "B12",
        "the 3rd",
        "1,5",
        "12,34",
        "1,2345",
        "1.234.567",
        "1 000",
        "It costs $12 500.",
        "#### 1 000",
        "5:30",
        "5-6",
        "5 or 6",
        "10^2",
        "10\u00b2",
        "5*3",
        "5 * 3",
        "5 ** 3",
        "5 eggs * 3",
        "5x3",
        "5 + 3",
        "5 \\times 3",
        "16 - 3",
        "3 and then 5 * 3",
        "18k",
        "$2 million",
        "2 dozen",
        "7/0",
        "9" * 61,
        "1e99999999",
        "v1.2",
        "\\boxed{3} and \\boxed{4}",
        "#### 9 * 2",
        "#### 18k",
    ],
)
def test_a_reply_that_gives_none_or_an_unclear_one(reply: str) -> None:
    assert extract_number(reply) is None


def test_numbers_are_compared_exactly() -> None:
    item = open_item("18", form="number")
    assert is_right(extract_answer("18.00", item), item)
    assert not is_right(extract_answer("18.0000000000000000000001", item), item)
    big = open_item("9007199254740993", form="number")  # 2^53 + 1, no float
    assert is_right(extract_answer("9,007,199,254,740,993", big), big)
    assert not is_right(extract_answer("9007199254740992", big), big)
    third = open_item("1/3", form="number")
    assert is_right(extract_answer("2/6", third), third)
    assert not is_right(extract_answer("0.3333333333333333", third), third)
    assert value_of("many") is None
    assert plain_number("18 eggs") is None
    assert plain_number("$1,080.") == "1080"


def test_a_number_in_mid_calculation_is_no_answer_when_the_reply_was_cut_off() -> None:
    item = open_item("18", form="number")
    assert extract_answer("She has 16 - 3 = 13 eggs, then", item) == "13"
    assert extract_answer("She has 16 - 3 = 13 eggs, then", item, cut_off=True) is None
    assert extract_answer("So\n#### 18\nBecause of", item, cut_off=True) == "18"
    # The answer itself is complete: the model went on with another question.
    assert extract_answer("18\n\nQuestion: And 3 +", item, cut_off=True) == "18"


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("18\n\nQuestion: Two?\nAnswer: 3", "18\n\n"),
        ("18\nQ: Two?\nA: 3", "18\n"),
        ("18\n**Question 2:** Two?", "18\n"),
        ("18\nUser: thanks", "18\n"),
        ("18<|im_end|>\n<|im_start|>user\n3", "18"),
        ("Question: One?\nAnswer: 18", "Question: One?\nAnswer: 18"),
        ("Question: One?\nAnswer: 18\nQuestion: Two?", "Question: One?\nAnswer: 18\n"),
        ("The question is: 18", "The question is: 18"),
        ("", ""),
    ],
)
def test_what_belongs_to_a_next_question_is_left_out(reply: str, kept: str) -> None:
    assert first_turn(reply) == kept


def test_choice_questions_ignore_a_next_question(item: Item) -> None:
    assert extract_answer("B\n\nQuestion: And?\nA. x\nB. y\nAnswer: C", item) == "B"
    assert is_right("B", item)
    assert not is_right("A", item)
    assert not is_right(None, item)


FALLACY = open_item("invalid", "Is it valid or invalid?\nOptions:\n- valid \n- invalid")
BOOLEAN = open_item("False", "not ( True ) and ( True ) is")
PLAUSIBLE = open_item("yes", "Is the sentence plausible?")
DATE = open_item("(B)", "(A) day.\nOptions:\n(A) 12/11/1937\n(B) 12/25/1937", form="option")
SORTING = open_item("apple syndrome therefrom", "Sort the following words: List: syndrome apple therefrom")
CITY = open_item("St. Paul")
BRACKETS = open_item("] ) }", "Complete: { ( [")


@pytest.mark.parametrize(
    ("item", "reply"),
    [
        (FALLACY, "invalid"),
        (FALLACY, "Invalid."),
        (FALLACY, "- invalid"),
        (FALLACY, "The argument is invalid."),
        (FALLACY, "It is deductively invalid."),
        (FALLACY, "So the answer is **invalid**."),
        (FALLACY, "Invalid, because a valid point is missing."),
        (FALLACY, "It is valid in part. So the answer is invalid."),
        (FALLACY, "\\boxed{invalid}"),
        (FALLACY, "invalid\n\nQuestion: And?\nOptions:\n- valid\nAnswer: valid"),
        (BOOLEAN, "False"),
        (BOOLEAN, "not ( True ) and ( True ) is False"),
        (BOOLEAN, "= False"),
        (PLAUSIBLE, "Yes, it is."),
        (PLAUSIBLE, "The answer is yes"),
        (DATE, "(B)"),
        (DATE, "B"),
        (DATE, "The answer is (B)."),
        (DATE, "(B) 12/25/1937"),
        (DATE, "12/25/1937"),
        (SORTING, "apple syndrome therefrom"),
        (SORTING, "Apple, syndrome, therefrom."),
        (SORTING, "1. apple\n2. syndrome\n3. therefrom"),
        (SORTING, "- apple\n- syndrome\n- therefrom"),
        (SORTING, "Here is the list:\n\napple syndrome therefrom"),
        (SORTING, "Sorted words: apple syndrome therefrom"),
        (SORTING, "First a, then s.\nSo the answer is apple, syndrome, therefrom."),
        (CITY, "St. Paul"),
        (CITY, "The answer is St. Paul. It lies in Minnesota."),
        (CITY, "The answer is St. Paul because it is."),
        (CITY, "The answer is Rome. No, the answer is St. Paul."),
        (FALLACY, "The answer is valid. No, the answer is invalid."),
        (BRACKETS, "])}"),
    ],
)
def test_a_right_reply(item: Item, reply: str) -> None:
    assert is_right(extract_answer(reply, item), item)


@pytest.mark.parametrize(
    ("item", "reply", "extracted"),
    [
        (FALLACY, "The argument is valid.", "valid"),
        (FALLACY, "valid", "valid"),
        (BOOLEAN, "It evaluates to True", "True"),
        (PLAUSIBLE, "No.", "no"),
        (PLAUSIBLE, "Yes. So the answer is no.", "no"),
        (DATE, "(A)", "(A)"),
        (SORTING, "therefrom apple syndrome", "therefrom apple syndrome"),
        (CITY, "Rome", "Rome"),
        (BRACKETS, ") ] }", ") ] }"),
    ],
)
def test_a_wrong_reply(item: Item, reply: str, extracted: str) -> None:
    assert extract_answer(reply, item) == extracted
    assert not is_right(extracted, item)


@pytest.mark.parametrize(
    ("item", "reply"),
    [
        (FALLACY, ""),
        (FALLACY, "I don't know"),
        (FALLACY, "valid or invalid"),
        (FALLACY, "The argument is not valid."),
        (FALLACY, "The answer is not valid"),
        (FALLACY, "The answer is valid or invalid"),
        (FALLACY, "Valid. The argument is invalid."),
        (FALLACY, "valid\ninvalid"),
        (FALLACY, "It makes a valid point"),
        (BOOLEAN, "True and False"),
        (PLAUSIBLE, "Maybe"),
        (PLAUSIBLE, "Yes and no"),
        (DATE, "(A) or (B)"),
        (DATE, "(C)"),
        (DATE, "(B) 12/11/1937"),
        (SORTING, ""),
        (SORTING, "Let me think of it.\nFirst the letters of all of the words.\nThen the next."),
    ],
)
def test_an_unparsable_reply(item: Item, reply: str) -> None:
    assert extract_answer(reply, item) is None
    assert not is_right(None, item)


def test_what_has_no_key_is_neither_right_nor_wrong() -> None:
    with pytest.raises(ValueError, match="has no key"):
        is_right("anything", open_item(""))


def test_a_label_without_options_in_the_question() -> None:
    item = open_item("(C)", "Which?", form="option")
    assert extract_answer("(C)", item) == "(C)"
    assert extract_answer("The answer is (D).", item) == "(D)"
    assert extract_answer("C or D", item) is None


def test_prompts_ask_for_what_is_read() -> None:
    number = open_item("18", "How many?", "number", reason="9 * 2 = 18")
    assert chat_question(number) == "How many?\nEnd with a line that holds #### and the number."
    assert plain_answer(number) == chat_answer(number) == "9 * 2 = 18\n#### 18"
    assert chat_question(DATE).endswith("Answer: and the label of the right option, such as (A).")
    assert (chat_question(CITY), chat_answer(CITY)) == ("Q?", "St. Paul")
    for item in (number, open_item("7", form="number"), DATE, CITY, FALLACY):
        assert is_right(extract_answer(chat_answer(item), item), item)


@given(st.text(max_size=300))
def test_it_never_crashes(reply: str) -> None:
    for item in (FALLACY, BOOLEAN, DATE, SORTING, open_item("18", form="number")):
        extracted = extract_answer(reply, item)
        assert extracted is None or isinstance(is_right(extracted, item), bool)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=3))
def test_any_decimal_is_read_as_written(value: object) -> None:
    item = open_item(str(value), form="number")
    assert is_right(extract_answer(f"It is {value:,}.", item), item)


@pytest.mark.parametrize(
    "text",
    [
        "answer is " * 10_000,
        "#### " * 20_000,
        "1," * 50_000,
        "- " * 50_000,
        "= " * 50_000,
        "*a " * 30_000,
        "\n" * 100_000,
        "(" * 100_000,
        "\\boxed{" * 15_000,
        "is valid or " * 8_000,
        "9" * 100_000,
        "Q:\n" * 30_000,
        "1 " * 50_000,
        "1/" * 50_000,
    ],
)
def test_a_hundred_kilobytes_are_read_in_time(text: str) -> None:
    for item in (FALLACY, DATE, SORTING, open_item("18", form="number")):
        extract_answer(text, item)
