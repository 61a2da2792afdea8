from __future__ import annotations

import pytest
from scipy.stats import fisher_exact

from detection import sets
from detection.method import Context, Text
from detection.sets.codec import CoDeC, contexts, difference, figures
from serving.records import Score


def options(**values):
    return CoDeC.Options(**values)


def test_contexts_are_shared_by_neighbours_and_hold_none_of_them():
    texts = [f"text {i}" for i in range(40)]
    found = contexts(texts, options(shots=3, items_per_context=8), seed=1)
    assert len(found) == 40
    assert len(set(found)) == 5
    for i, prefix in enumerate(found):
        drawn = prefix.removesuffix("\n\n").split("\n\n")
        group = {f"text {j}" for j in range(i // 8 * 8, i // 8 * 8 + 8)}
        assert len(drawn) == 3
        assert not group & set(drawn)
    assert found == contexts(texts, options(shots=3, items_per_context=8), seed=1)
    assert found != contexts(texts, options(shots=3, items_per_context=8), seed=2)


def test_few_texts_have_what_is_there_before_them():
    assert contexts(["a", "b"], options(), seed=0) == ["b\n\n", "a\n\n"]
    assert contexts(["a", "a"], options(), seed=0) == ["", ""]
    three = contexts(["a", "b", "c"], options(shots=5), seed=0)
    assert sorted(three[0].split()) == ["b", "c"]


def test_both_means_are_over_the_same_tokens(tokens):
    alone = tokens([-9.0, -1.0, -3.0], ["bos", "prompt", "prompt"])
    after = tokens([-8.0, -2.0, -1.0], ["answer"] * 3)  # its first token has no prediction when it stands alone
    assert difference(alone, after) == (-2.0 - 1.0) / 2 - (-1.0 - 3.0) / 2
    assert difference(tokens([]), after) != difference(tokens([]), after)  # NaN


def test_with_labels_the_test_is_fishers():
    labels = [1] * 10 + [0] * 10
    differences = [-1.0] * 9 + [1.0] + [-1.0] * 3 + [0.0] * 6 + [float("nan")]
    found = figures(labels, differences, None)
    assert (found["n"], found["n_unscorable"]) == (19, 1)
    assert found["share"] == 12 / 19
    assert found["share_members"] == 0.9
    assert found["share_non_members"] == pytest.approx(3 / 9)
    assert found["p_value"] == pytest.approx(fisher_exact([[9, 1], [3, 6]], alternative="greater").pvalue)
    # by hand: the tables at least as extreme have 9 or 10 falls among the 10 members, 12 falls in all of 19
    ways = (10 * 84 + 1 * 36) / 50388  # C(10,9) C(9,3) + C(10,10) C(9,2) over C(19,12)
    assert found["p_value"] == pytest.approx(ways)


def test_without_labels_a_null_must_be_named():
    found = figures([None] * 4, [-1.0, -1.0, -1.0, 1.0], None)
    assert found["p_value"] is None
    assert "clean model" in found["reason"]
    low, high = found["share_ci"]
    assert (round(low, 4), round(high, 4)) == (0.3006, 0.9544)  # Wilson, 3 of 4
    named = figures([None] * 4, [-1.0, -1.0, -1.0, 1.0], 0.5)
    assert named["p_value"] == pytest.approx(5 / 16)
    assert figures([1], [float("nan")], 0.5)["reason"] == "no text with a score"


def test_a_set_that_is_disturbed_by_its_own_items(tokens, drive):
    """Members lose by context, non-members gain."""
    texts = [Text(id=i, text=f"item {i}", label=i % 2) for i in range(20)] + [Text(id="empty", text="", label=0)]

    def answer(demand: Score):
        if not demand.continuation:
            return tokens([-2.0, -2.0])
        assert demand.answer_only
        leaked = int(demand.continuation.split()[1]) % 2
        return tokens([-3.0, -3.0] if leaked else [-1.0, -1.0], ["answer"] * 2, dropped=1 if leaked else 0)

    (test,) = sets.build(["codec"], Context(seed=3))
    found, asked = drive(test.examine(texts, []), answer)
    assert [len(step) for step in asked] == [20, 20]
    assert (found["share_members"], found["share_non_members"], found["n"], found["n_cut"]) == (1.0, 0.0, 20, 10)
    assert found["p_value"] == pytest.approx(1 / 184756)  # C(20, 10)
    assert found["mean_difference"] == 0.0


def test_one_text_has_no_other(tokens, drive):
    (test,) = sets.build(["codec"], Context())
    found, asked = drive(test.examine([Text(id=1, text="alone")], []), lambda _: tokens([-1.0]))
    assert (found["p_value"], found["n"], asked) == (None, 0, [])
    same, _ = drive(test.examine([Text(id=1, text="x"), Text(id=2, text="x")], []), lambda _: tokens([-1.0]))
    assert (same["n"], same["n_unscorable"], same["share"]) == (0, 2, None)
