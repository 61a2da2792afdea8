"""Loss gap: the mean token loss on untouched items minus that on leaked items. Positive means leakage.

The sign is that of every number in this folder. Skywork (Wei et al. 2023, arXiv:2310.19341) compares a
benchmark's test set with its training set and with a reference set written anew; its two differences are ``skywork``.

Two averages exist and both are named, for published codes differ: *per example* (the mean of each item's mean, every
item weighs the same) and *per token* (all tokens pooled, long items weigh more). Eight tokens of loss 1 in one item
and one token of loss 5 in another are 3.0 per example and 13/9 = 1.444 per token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.statistics import welch


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLoss:
    """mean: mean of -l_t over an item's tokens, in nats; tokens: how many (at least 1)."""

    mean: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LossGap:
    """Untouched minus leaked, nats per token, with Welch's 95% intervals over items; None with a ``reason``.

    per_example, per_token: the two averages (see above); no interval below 2 items in a group or without any spread
    p_value: one-sided Welch t-test of the items' means, untouched > leaked; None where there is no interval
    """

    per_example: float | None
    per_example_ci: tuple[float, float] | None
    per_token: float | None
    per_token_ci: tuple[float, float] | None
    p_value: float | None
    n_untouched: int
    n_leaked: int
    reason: str = ""


def average_per_example(items: Sequence[ItemLoss]) -> float:
    """Mean over items of the item's mean loss; NaN for none."""
    return math.fsum(item.mean for item in items) / len(items) if items else math.nan


def average_per_token(items: Sequence[ItemLoss]) -> float:
    """Summed loss over summed tokens; NaN for none."""
    tokens = sum(item.tokens for item in items)
    return math.fsum(item.mean * item.tokens for item in items) / tokens if tokens else math.nan


def loss_gap(untouched: Sequence[ItemLoss], leaked: Sequence[ItemLoss]) -> LossGap:
    """The gap in both averages. An empty group gives None with a reason."""
    if not untouched or not leaked:
        missing = "untouched" if not untouched else "leaked"
        return LossGap(
            per_example=None,
            per_example_ci=None,
            per_token=None,
            per_token_ci=None,
            p_value=None,
            n_untouched=len(untouched),
            n_leaked=len(leaked),
            reason=f"no {missing} item with a loss",
        )
    examples = welch([item.mean for item in untouched], [item.mean for item in leaked])
    tokens = welch(_token_weighted(untouched), _token_weighted(leaked))
    return LossGap(
        per_example=average_per_example(untouched) - average_per_example(leaked),
        per_example_ci=None if examples is None else examples.interval,
        per_token=average_per_token(untouched) - average_per_token(leaked),
        per_token_ci=None if tokens is None else tokens.interval,
        p_value=None if examples is None else examples.p_greater,
        n_untouched=len(untouched),
        n_leaked=len(leaked),
    )


def _token_weighted(items: Sequence[ItemLoss]) -> list[float]:
    """Values whose mean is the average per token and whose spread is that of the ratio, by its linear approximation
    (Cochran 1977, Sampling Techniques, 6.3)."""
    average, tokens = average_per_token(items), sum(item.tokens for item in items) / len(items)
    return [average + item.tokens / tokens * (item.mean - average) for item in items]


def item_losses(records: Sequence[Mapping[str, Any]], part: str = "") -> dict[int, list[ItemLoss]]:
    """The losses in audit records (see ``audit.audit_dialogue``) by label: {0: untouched, 1: leaked}.

    part: "" (whole text), "/prompt" or "/answer". Records without a label or without a score are left out.
    """
    found: dict[int, list[ItemLoss]] = {0: [], 1: []}
    for record in records:
        score = record["scores"].get(f"loss{part}")
        tokens = record["part_tokens"].get(part)
        if record["label"] is not None and score is not None and tokens:
            found[record["label"]].append(ItemLoss(mean=-score, tokens=tokens))
    return found


def skywork(
    *, test: Sequence[ItemLoss], reference: Sequence[ItemLoss] = (), train: Sequence[ItemLoss] = ()
) -> dict[str, float | None]:
    """Skywork's own differences, per example, in their own signs; None where a set is missing.

    D1 = L_test - L_ref: clearly *negative* if the test set was trained on (its loss is below that of newly written,
        similar items).
    D2 = L_test - L_train: clearly *positive* if the training set was trained on and the test set was not; near 0 if
        neither or both were.
    """
    differences = {
        "D1": average_per_example(test) - average_per_example(reference),
        "D2": average_per_example(test) - average_per_example(train),
    }
    return {name: None if math.isnan(value) else value for name, value in differences.items()}
