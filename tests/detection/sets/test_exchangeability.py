from __future__ import annotations

import itertools
import math

import pytest

from detection import sets
from detection.method import Context, Text
from detection.sets.exchangeability import permuted, split, t_test


def test_shards_are_contiguous_and_hold_two_texts_at_least():
    assert split(list("abcdefg"), 3) == [["a", "b"], ["c", "d"], ["e", "f", "g"]]
    assert split(list("abcde"), 15) == [["a", "b"], ["c", "d", "e"]]
    assert split(["a"], 3) == []
    assert split([], 3) == []


def test_permutations_are_seeded_and_keep_the_texts():
    orders = permuted(list("abcdef"), 5, 7, 2)
    assert all(sorted(order) == list("abcdef") for order in orders)
    assert orders == permuted(list("abcdef"), 5, 7, 2)
    assert orders != permuted(list("abcdef"), 5, 8, 2)
    assert len({tuple(order) for order in orders}) > 1


def test_the_t_test_by_hand():
    # mean 2, variance ((1 + 0 + 1) / 2) = 1, t = 2 / (1 / sqrt 3) = 3.4641; of t with 2 degrees of freedom:
    # P(T > t) = 1/2 - t / (2 sqrt(2 + t^2)) = 0.5 - 3.4641 / (2 * 3.7417) = 0.0371
    found = t_test([1.0, 2.0, 3.0])
    assert found["statistic"] == pytest.approx(2 * math.sqrt(3))
    assert found["p_value"] == pytest.approx(0.5 - math.sqrt(12) / (2 * math.sqrt(14)))
    assert t_test([-1.0, -2.0, -3.0])["p_value"] == pytest.approx(1 - found["p_value"])


def test_the_survival_function_keeps_small_p_values():
    far = t_test([100.0 + i % 2 / 1000 for i in range(50)])["p_value"]
    assert 0 < far < 1e-100  # 1 - cdf is 0 from 1e-16 on


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], "0 shards"), ([1.0], "1 shards"), ([2.0, 2.0], "no spread"), ([1.0, -math.inf], "no finite")],
)
def test_no_test_without_shards_or_spread(values, reason):
    found = t_test(values)
    assert found["p_value"] is None
    assert reason in found["reason"]


def ordered(tokens, texts, favoured):
    """A model that knows the file: after a text, the next one of the file is more probable."""
    follows = dict(itertools.pairwise(texts))

    def answer(demand):
        parts = demand.prompt.split("\n\n")
        logprobs = [-2.0] + [favoured if follows.get(a) == b else -2.0 for a, b in itertools.pairwise(parts)]
        return tokens(logprobs)

    return answer


def examine(drive, answer, texts, **options):
    context = Context(seed=1, options={"exchangeability": options})
    (test,) = sets.build(["exchangeability"], context)
    return drive(test.examine(texts, []), answer)


def test_a_file_known_in_its_order_is_found_and_an_unknown_one_is_not(tokens, drive):
    texts = [Text(id=i, text=f"row {i}") for i in range(60)]
    strings = [text.text for text in texts]
    found, asked = examine(drive, ordered(tokens, strings, -1.0), texts, shards=10, permutations=8)
    assert (found["n"], found["shards"], found["permutations"]) == (60, 10, 8)
    assert len(asked) == 10
    assert [len(step) for step in asked] == [9] * 10
    assert asked[0][0].prompt == "\n\n".join(strings[:6])
    assert found["p_value"] < 1e-6
    assert 0 < found["mean_difference"] <= 5  # at most one nat per seam, five seams in a shard
    clean, _ = examine(drive, ordered(tokens, strings, -2.0), texts, shards=10, permutations=8)
    assert clean["p_value"] is None
    assert clean["differences"] == [0.0] * 10


def test_only_members_enter_where_some_are_labelled(tokens, drive):
    texts = [Text(id=i, text=f"row {i}", label=i % 2) for i in range(12)] + [Text(id="e", text="", label=1)]
    found, asked = examine(drive, lambda demand: tokens([-1.0]), texts, shards=3, permutations=2)
    assert found["n"] == 6
    assert {row for step in asked for demand in step for row in demand.prompt.split("\n\n")} == {
        f"row {i}" for i in range(1, 12, 2)
    }


def test_few_texts(tokens, drive):
    found, asked = examine(drive, lambda demand: tokens([-1.0]), [Text(id=i, text=f"t{i}") for i in range(3)])
    assert (found["p_value"], found["n"], found["shards"], len(asked)) == (None, 3, 1, 1)
    assert "1 shards" in found["reason"]
    assert examine(drive, None, [])[0]["reason"].startswith("0 shards")


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match=r"exchangeability.shards: .* \(it is 1\)"):
        sets.build(["exchangeability"], Context(options={"exchangeability": {"shards": 1}}))
    with pytest.raises(ValueError, match="did you mean 'exchangeability'"):
        sets.build(["exchangability"], Context())
