from __future__ import annotations

import math

import pytest

from detection.detectors.min_k_plus_plus import MinKPlusPlus
from detection.method import Context, Text, lowest_means, mean, parts, table


@pytest.mark.parametrize(
    ("n", "k", "count"),
    [(4, 20, 1), (5, 20, 1), (6, 20, 2), (10, 10, 1), (10, 30, 3), (100, 7, 7), (1, 5, 1), (20, 5, 1), (21, 5, 2)],
)
def test_k_is_rounded_up_in_integers(n, k, count):
    values = [float(i) for i in range(n)]
    assert lowest_means(values, [k])[k] == pytest.approx(sum(values[:count]) / count)


def test_mean_does_not_depend_on_the_order():
    values = [1e16, 1.0, -1e16, 0.1, 0.2, 0.3]
    assert mean(values) == mean(values[::-1])
    assert math.isnan(mean([]))


def test_a_value_without_a_place_in_the_order_spoils_the_score():
    assert all(map(math.isnan, lowest_means([-1.0, math.nan, -2.0, -3.0], [5, 60]).values()))


def test_equal_texts_ask_the_same_thing():
    plain = Text(id="a", text="one two")
    assert table(plain, True) == table(Text(id="b", text="one two", label=1), True)
    assert table(plain, True) != table(plain, False)
    split = table(Text(id="a", text="one two", prompt="one"), False)
    assert (split.prompt, split.continuation, split.role) == ("one", " two", "candidate")


@pytest.mark.parametrize("prompt", ["two", "one two", "One"])
def test_a_prompt_must_begin_the_text_and_leave_an_answer(prompt):
    with pytest.raises(ValueError, match="'a'"):
        Text(id="a", text="one two", prompt=prompt)


def test_parts_leave_out_the_tokens_of_the_format(tokens):
    scored = tokens([-1.0, -2.0, -3.0, -4.0], ["bos", "template", "prompt", "answer"])
    whole, prompt, answer = parts(Text(id="a", text="one two", prompt="one"), scored)
    assert [whole.logprobs, prompt.logprobs, answer.logprobs] == [[-3.0, -4.0], [-3.0], [-4.0]]
    assert [whole.text, prompt.text, answer.text] == ["one two", "one", " two"]
    assert [p.suffix for p in parts(Text(id="a", text="one two"), scored)] == [""]


def test_a_detector_refuses_a_context_that_lacks_what_it_needs():
    with pytest.raises(ValueError, match="min_k_plus_plus"):
        MinKPlusPlus(Context())
