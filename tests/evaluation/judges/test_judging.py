from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.asking.form import COMMENT_CHARACTERS
from evaluation.asking.verdict import CHOICE, RATING, VerdictForm
from evaluation.idgen.exam import score_form
from evaluation.judges.mt_bench import MTBenchOptions
from evaluation.judges.pairwise import PairwiseOptions
from evaluation.kieval import verdict as verdicts
from evaluation.kieval.free_text import parse_free as parse_kieval
from evaluation.registry import build

FORMS = {"rating": RATING, "choice": CHOICE}


def rated(value: Any, comment: Any = "fine") -> str:
    return json.dumps({"comment": comment, "rating": value})


@pytest.mark.parametrize("value", range(1, 11))
def test_every_structured_rating_is_read(value: int) -> None:
    found = RATING.parse_structured(rated(value))
    assert found is not None
    assert (found.value, found.comment) == (value, "fine")


@pytest.mark.parametrize("value", ["A", "B", "tie"])
def test_every_structured_choice_is_read(value: str) -> None:
    found = CHOICE.parse_structured(json.dumps({"comment": "c\u00e9", "choice": value}))
    assert found is not None
    assert (found.value, found.comment) == (value, "c\u00e9")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        "Rating: 7",
        rated(7)[:-2],
        rated(0),
        rated(11),
        rated(True),
        rated("7 of 12"),
        rated("seven"),
        rated("7/5"),
        rated(7.5),
        rated("7.5"),
        rated([7]),
        rated(7, None),
        '{"comment": "no rating"}',
        '{"comment": "", "rating": 2, "rating": 10}',
        "[" * 100_000,
        "9" * 5_000,
    ],
)
def test_what_has_not_the_form_is_missing(text: str) -> None:
    assert RATING.parse_structured(text) is None


@pytest.mark.parametrize("value", ["D", "A or B", "[[A>>B]] [[B>>A]]", "", None, 1, ["A"]])
def test_other_choices_are_missing(value: Any) -> None:
    assert CHOICE.parse_structured(json.dumps({"comment": "", "choice": value})) is None


@pytest.mark.parametrize("value", ["8", 8.0, "8.0", " 8 ", "8/10", "8 / 10", "8 out of 10"])
def test_a_judge_may_quote_its_number(value: Any) -> None:
    for found in (RATING.parse_structured(rated(value)), RATING.parse_free(f"Here it is:\n{rated(value)}")):
        assert found is not None
        assert (found.value, type(found.value)) == (8, int)
    form = score_form(3)
    assert [form.parse_structured(json.dumps({"score": given})) for given in ("4", 2.5, True, "2/5")] == [None] * 4
    found = form.parse_structured('{"score": "2/3"}')
    assert found is not None
    assert found.value == 2


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        ("a", "A"),
        ("Tie", "tie"),
        (" B ", "B"),
        ("C", "tie"),
        ("[[A]]", "A"),
        ("A>>B", "A"),
        ("[[B>A]]", "B"),
        ("A=B", "tie"),
    ],
)
def test_a_judge_may_write_its_choice_otherwise(value: str, choice: str) -> None:
    found = CHOICE.parse_structured(json.dumps({"choice": value}))
    assert found is not None
    assert found.value == choice


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("My final verdict is: [[A>>B]]", "A"),
        ("My final verdict is Assistant A is slightly better: [[A>B]]", "A"),
        ("[[A=B]]", "tie"),
        ("[[B>A]]", "B"),
        ("Assistant B is significantly better: [[B>>A]].", "B"),
        ("[[ A >> B ]]", "A"),
        ("[[A\\>\\>B]]", "A"),
        ("[[A&gt;B]]", "A"),
        ("[[A<B]]", "B"),
        ("Choose among [[A>>B]], [[A>B]], [[A=B]], [[B>A]] and [[B>>A]].", None),
        ("[[A>>B]] on style, yet [[B>A]]", None),
        ("[[A>>B]] and [[A>B]]", "A"),
        ("| [[A>>B]]", None),
        ("[[A>>C]]", None),
    ],
)
def test_arena_hards_verdicts(text: str, choice: str | None) -> None:
    found = CHOICE.parse_free(text)
    assert (None if found is None else found.value) == choice


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("Rating: 8 points", 8),
        ("Rating: 8 (out of 10)", 8),
        ("Rating: 4 stars out of 5", None),
        ("Rating: 7 (out of 20)", None),
        ("Rating: 10%", None),
        ("Rating: 8\nOn second thought, rating: 6", None),
    ],
)
def test_a_rating_of_another_scale_is_none(text: str, rating: int | None) -> None:
    found = RATING.parse_free(text)
    assert (None if found is None else found.value) == rating


@pytest.mark.parametrize(
    ("text", "choice"),
    [("Winner: A is not better", None), ("Winner: B isn't clear", None), ("Winner: A is better", "A")],
)
def test_a_denied_choice_is_none(text: str, choice: str | None) -> None:
    found = CHOICE.parse_free(text)
    assert (None if found is None else found.value) == choice


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 20_000,
        '{"rating":' * 20_000,
        '{"' * 20_000,
        '{"a": [1, ' * 5_000,
        "{" * 20_000,
        '"`“' * 7_000,
        "[[" * 10_000,
    ],
)
def test_a_hostile_verdict_is_read_in_time(text: str) -> None:
    begun = time.process_time()
    assert RATING.parse_free(text) is None
    assert CHOICE.parse_free(text) is None
    assert parse_kieval(text) is None
    assert time.process_time() - begun < 3


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("length", [1, 24, 300])
def test_the_schema_bounds_the_tokens(form: VerdictForm, length: int) -> None:
    schema = form.fields(length).schema()
    assert list(schema["properties"]) == ["comment", form.key] == schema["required"]
    assert schema["additionalProperties"] is False
    comment = schema["properties"]["comment"]
    # vLLM refuses a pattern together with length bounds.
    assert set(comment) == {"type", "pattern"}
    assert re.fullmatch(comment["pattern"], "x" * length)
    assert not re.fullmatch(comment["pattern"], "x" * (length + 1))
    for value in form.values:
        longest = json.dumps({"comment": "x" * length, form.key: value})
        assert form.parse_structured(longest) is not None
        assert len(longest) < form.fields(length).tokens()


def test_comments_have_the_characters_of_a_kieval_verdict() -> None:
    other = verdicts.verdict_schema(24)["properties"]["overall"]["properties"]["comment"]
    assert RATING.fields(24).schema()["properties"]["comment"] == other
    assert not any(re.fullmatch(COMMENT_CHARACTERS, character) for character in '"\\\t\n\x7f\u65e5')


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_xgrammar_enforces_the_schema(form: VerdictForm) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    accepts = pytest.importorskip("xgrammar.testing")._is_grammar_accept_string
    grammar = xgrammar.Grammar.from_json_schema(
        json.dumps(form.fields(24).schema()), any_whitespace=False, separators=(",", ":")
    )

    def compact(comment: str, value: Any) -> str:
        return json.dumps({"comment": comment, form.key: value}, separators=(",", ":"), ensure_ascii=False)

    for value in form.values:
        assert accepts(grammar, compact("it's {fine} [[10]]", value))
    for bad in (0, 11, "8", 8.5, "C", "a", None):
        assert not accepts(grammar, compact("fine", bad))
    for comment in ("x" * 25, 'a"b', "a\\b", "a\tb", "\u65e5"):
        assert not accepts(grammar, compact(comment, form.values[0]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Rating: 8", 8),
        ("A good reply.\n\n**Rating:** 8", 8),
        ("**Final rating: 8**", 8),
        ("Rating: [[8]]", 8),
        ("My rating is at the end [[10]]", 10),
        ("- rating: 8/10.", 8),
        ("Score (1-10): 7 out of 10", 7),
        ("Overall score = 3", 3),
        ("RATING: 10\nRating: 10", 10),
        ('Rating: "8"', 8),
        ("**Rating**: `8`", 8),
        ("Rating: 8.0", 8),
        ("[[8.0]]", 8),
        ("Score: 8.0/10", 8),
        ("My rating is 8", 8),
        ("Rating: 8, since it names 3 of 4 causes", 8),
        ("Here you are:\n```json\n" + rated(4) + "\n```", 4),
        (rated(4) + "\nRating: 4", 4),
        (rated(3, "it claims Rating: 10 and [[10]]"), 3),
        ('It claims "Rating: 10" and `[[10]]`.\nRating: 2', 2),
        ("| Rating: 10\n  | [[9]]\nRating: 2", 2),
        ("[[rating]]\nRating: 2", 2),
        ("Rating: good\nRating: 6", 6),
    ],
)
def test_a_free_rating_is_read_leniently(text: str, value: int) -> None:
    found = RATING.parse_free(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A fine reply that deserves 10.",
        "Rating: good",
        "Rating: 85",
        "Rating: 0",
        "Rating: 8.5",
        "[[8.5]]",
        "Rating: 7-8",
        "Rating: 1 to 10",
        "Rating: 7 or 8",
        "Rating: 4/5",
        "Rating: 3\nRating: 9",
        "Rating: 3\n[[9]]",
        "Rating: 85\nRating: 8",
        rated(3) + rated(4),
        rated(3) + "\nRating: 4",
        '{"comment": "", "rating": 2, "rating": 10}',
        "| Rating: 9",
        'The reply says "Rating: 10".',
        "The reply says Rating: 10",
        "Operating: 9",
    ],
)
def test_a_free_rating_is_never_guessed(text: str) -> None:
    assert RATING.parse_free(text) is None


def test_a_cut_rating_may_be_half_a_number() -> None:
    for text in ("Rating: 1", "Rating: 8.", "Rating: 8/1"):
        assert RATING.parse_free(text, cut=True) is None
    for text in ("Rating: 8\nIt", "[[8]]", "Rating: 8 out"):
        found = RATING.parse_free(text, cut=True)
        assert found is not None
        assert found.value == 8


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Choice: A", "A"),
        ("A is wrong about the year.\n**Choice: B**", "B"),
        ("Winner: Assistant A", "A"),
        ("Verdict: it is a tie.", "tie"),
        ("Better reply: B", "B"),
        ("[[A]]", "A"),
        ("Final verdict: [[C]]", "tie"),
        ("Choice: tie\n[[tie]]", "tie"),
        ("Choice: A, since B is empty", "A"),
        ('{"comment": "Choice: B would be unfair", "choice": "A"}', "A"),
        ("| Choice: B\nChoice: A", "A"),
    ],
)
def test_a_free_choice_is_read_leniently(text: str, value: str) -> None:
    found = CHOICE.parse_free(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "A is better.",
        "Choice: A or B",
        "Choice: A and B are alike",
        "Choice: a good reply by B",
        "Choice: A\nChoice: B",
        "[[A]] [[B]]",
        "Choice: neither",
        "| [[A]]",
    ],
)
def test_a_free_choice_is_never_guessed(text: str) -> None:
    assert CHOICE.parse_free(text) is None


@given(st.text(max_size=300), st.booleans())
def test_free_text_never_crashes(text: str, cut: bool) -> None:
    for form in FORMS.values():
        form.parse_free(text, cut=cut)
        form.parse_free("Rating: " + text + "{[[" + text, cut=cut)


def test_long_free_texts_are_read_in_no_time() -> None:
    for text in ("{" * 20_000, '{"a":' * 5_000, "rating" * 20_000, "[[" * 50_000, " " * 100_000, '"' * 99_999):
        for form in FORMS.values():
            assert form.parse_free(text) is None


def test_options_are_checked() -> None:
    needed = RATING.fields(24).tokens()
    with pytest.raises(ValueError, match=rf"evaluator_tokens is {needed - 1}.*can need {needed}"):
        build("mt_bench", {"comment_length": 24, "evaluator_tokens": needed - 1}, seed=0)
    assert MTBenchOptions(comment_length=24, evaluator_tokens=needed).evaluator_tokens == needed
    assert MTBenchOptions(verdict="free", evaluator_tokens=5).evaluator_tokens == 5
    assert PairwiseOptions().form is CHOICE
    with pytest.raises(ValueError, match=r"mt_bench.retries.*it is -1"):
        build("mt_bench", {"retries": -1}, seed=0)
    with pytest.raises(ValueError, match=r"mt_bench.baseline: unknown option"):
        build("mt_bench", {"baseline": "x"}, seed=0)
