from __future__ import annotations

import math

import numpy as np
import pytest

from detection.statistics.loss_gap import (
    ItemLoss,
    average_per_example,
    average_per_token,
    item_losses,
    loss_gap,
    skywork,
)


def items(*means, tokens=1):
    return [ItemLoss(mean=mean, tokens=tokens) for mean in means]


def test_the_two_averages():
    two = [ItemLoss(mean=1.0, tokens=8), ItemLoss(mean=5.0, tokens=1)]
    assert average_per_example(two) == 3.0
    assert average_per_token(two) == pytest.approx(1.444, abs=5e-4)
    assert math.isnan(average_per_example([]))
    assert math.isnan(average_per_token([]))


def test_leaked_items_of_lower_loss_give_a_positive_gap():
    untouched = [ItemLoss(mean=3.0, tokens=1), ItemLoss(mean=5.0, tokens=3)]
    leaked = [ItemLoss(mean=1.0, tokens=8), ItemLoss(mean=2.0, tokens=2)]
    found = loss_gap(untouched, leaked)
    assert found.per_example == pytest.approx(4.0 - 1.5)
    assert found.per_token == pytest.approx(4.5 - 1.2)
    assert (found.n_untouched, found.n_leaked, found.reason) == (2, 2, "")
    # Welch by hand: variances 2 and 1/2 over 2 items each, error sqrt(1.25), 1.25^2 / (1 + 1/16) = 1.4706 degrees of
    # freedom, t(.975) = 6.188
    assert found.per_example_ci == pytest.approx((2.5 - 6.188 * 1.118, 2.5 + 6.188 * 1.118), abs=0.005)
    assert found.p_value is not None
    assert found.p_value < 0.1


def test_intervals_lie_around_the_gap_and_are_reproducible():
    rng = np.random.default_rng(0)
    untouched, leaked = (
        [ItemLoss(mean=float(rng.normal(centre, 1)), tokens=int(rng.integers(5, 50))) for _ in range(100)]
        for centre in (3, 2)
    )
    found = loss_gap(untouched, leaked)
    for value, interval in ((found.per_example, found.per_example_ci), (found.per_token, found.per_token_ci)):
        assert value is not None
        assert interval is not None
        assert 0 < interval[0] < value < interval[1]
    assert found.per_example_ci is not None
    assert found.per_example_ci[1] - found.per_example_ci[0] == pytest.approx(2 * 1.96 * math.sqrt(2 / 100), rel=0.2)
    assert found == loss_gap(untouched, leaked)
    assert found.p_value is not None
    assert found.p_value < 1e-6


def test_the_test_is_one_sided_towards_leakage():
    found = loss_gap(items(1.0, 1.5, 1.2), items(3.0, 3.5, 3.2))
    assert found.per_example is not None
    assert found.per_example < 0
    assert found.p_value is not None
    assert found.p_value > 0.99


def test_an_empty_group_is_named_and_too_few_items_have_no_test():
    assert loss_gap([], items(1.0)).reason == "no untouched item with a loss"
    assert loss_gap(items(1.0), []).per_token is None
    assert loss_gap(items(1.0), items(2.0)).p_value is None
    assert loss_gap(items(1.0, 1.0), items(2.0, 2.0)).p_value is None


def test_losses_come_from_records_by_label_and_part():
    def record(label, scores, part_tokens):
        return {"label": label, "scores": scores, "part_tokens": part_tokens}

    records = [
        record(0, {"loss": -2.0, "loss/answer": -1.0}, {"": 10, "/answer": 4}),
        record(1, {"loss": -0.5, "loss/answer": None}, {"": 20, "/answer": 0}),
        record(None, {"loss": -9.0}, {"": 5}),
        record(1, {"loss": None}, {"": 0}),
    ]
    assert item_losses(records) == {0: [ItemLoss(mean=2.0, tokens=10)], 1: [ItemLoss(mean=0.5, tokens=20)]}
    assert item_losses(records, "/answer") == {0: [ItemLoss(mean=1.0, tokens=4)], 1: []}


def test_skyworks_differences_keep_their_own_signs():
    leaked_test = skywork(test=items(1.0, 2.0), reference=items(3.0, 3.0), train=items(2.5))
    assert leaked_test == {"D1": -1.5, "D2": -1.0}
    leaked_train = skywork(test=items(3.0), train=items(1.0))
    assert leaked_train == {"D1": None, "D2": 2.0}
