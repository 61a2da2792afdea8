"""Candidates examined together: the tables of a report, and their win rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evaluation.show.table import Cell, Table, with_best
from evaluation.show.table import figure as cell_of

Metrics = Mapping[str, Any]
PREFIX = "group_"
MOSTLY = 0.5
"""Share of contradicted pairs above which an order by merge sort is said to be chance."""


class WinRates(NamedTuple):
    """suffix of the figure's file; heading's end; about: what is compared; names, matrix: as in plots.json"""

    suffix: str
    heading: str
    about: str
    names: list[str]
    matrix: list[list[float | None]]


def tables(summary: Mapping[str, Any]) -> list[Table]:
    """One for each finished group, called ``group_<name>``."""
    made = {"ranking": ranking, "peer_examination": peers, "style_bias": style}
    return [made[metrics["protocol"]](name, metrics) for name, metrics in summary["groups"].items()]


def ranking(name: str, metrics: Metrics) -> Table:
    """Rows candidates, the best first: win rate, Bradley-Terry with interval, the examiner's inconsistency."""
    fitted, rates = metrics["bradley_terry"], metrics["win_rates"]["mean"]
    order = sorted(rates, key=lambda one: 0.0 if rates[one] is None else -rates[one])
    rows = [
        [
            Cell(one),
            cell_of(rates[one], None, 1, 3),
            cell_of(_plain_zero(fitted["strengths"][one]), fitted["intervals"][one], 1, 2),
            cell_of(metrics["inconsistency"], None, 1, 3),
        ]
        for one in order
    ]
    caption = (
        f"Ranking {name}: {metrics['n']} questions, {metrics['calls']['comparisons']} pairs of answers, each compared "
        "in both orders. Win rate: mean against all others, a contradiction is half a win. Bradley-Terry: natural "
        "logarithm, mean 0, interval over questions. Inconsistency: share of pairs on which the examiner contradicts "
        "itself when the order is turned (one figure for the examiner, not the candidate)."
    )
    inferred = sum(map(sum, metrics["win_rates"]["inferred"])) // 2
    if inferred:
        caption += f" {inferred} pairs were never compared and come from the final order (merge sort)."
    if fitted["reason"]:
        caption += f" No strengths: {fitted['reason']}."
    header = ("candidate", "win rate", "Bradley-Terry", "examiner's inconsistency")
    return _table(name, caption, header, rows, (0, 1, 1, 0))


def _plain_zero(value: float | None) -> float | None:
    """A fit's -3e-13 is 0, and not shown as -0.00."""
    return None if value is None else round(value, 6) + 0.0


def peers(name: str, metrics: Metrics) -> Table:
    """Rows candidates, columns examiners: full marks in percent, AVG, AVG_weight."""
    models = list(metrics["full_marks"])
    rows = [
        [
            Cell(one),
            *(cell_of(metrics["full_marks"][one][examiner], None, 1, 1) for examiner in models),
            *(cell_of(metrics[key][one], None, 1, 1) for key in ("AVG", "AVG_weight")),
        ]
        for one in models
    ]
    shares = ", ".join(f"{one} {'-' if v is None else format(v, '.2f')}" for one, v in metrics["inconsistency"].items())
    caption = (
        f"Peer examination {name}: {metrics['n']} questions of {metrics['asked']} that were asked for. Share of "
        "answers with full marks, in percent, on the questions of the column's examiner; nobody marks its own. AVG: "
        "mean over the examiners. AVG_weight: mean after each column is scaled to 100 at its highest. "
        f"Inconsistency of the examiners when the order is turned: {shares}."
    )
    caption += "".join(f" Notice: {line}." for line in metrics["notices"])
    if metrics["unscaled"]:
        caption += f" Not scaled, for nobody has full marks from them: {', '.join(metrics['unscaled'])}."
    better = (0, *(1 for _ in models), 1, 1)
    return _table(name, caption, ("candidate", *(f"by {one}" for one in models), "AVG", "AVG_weight"), rows, better)


def style(name: str, metrics: Metrics) -> Table:
    """Rows examiners: preference for the rewrite over the pairs that the filter kept, and over all."""
    rows = []
    for one, whole in metrics["all_pairs"]["examiners"].items():
        kept = metrics["examiners"].get(one, {})
        rows.append(
            [
                Cell(one),
                cell_of(kept.get("prefers_rewrite"), kept.get("interval"), 1, 3),
                Cell(str(kept.get("n", 0)), kept.get("n", 0)),
                cell_of(whole["prefers_rewrite"], whole["interval"], 1, 3),
                Cell(str(whole["n"]), whole["n"]),
                cell_of(whole["inconsistency"], None, 1, 3),
            ]
        )
    caption = (
        f"Style bias {name}: {metrics['kept']} of {metrics['n']} rewrites kept by {metrics['filter']}. Preference for "
        "the rewrite: 0.5 is none, a contradiction counts 0.5. Inconsistency: over all pairs, when the order is turned."
    )
    header = ("examiner", "prefers the rewrite", "n", "of all pairs", "n of all", "inconsistency")
    return _table(name, caption, header, rows, (0,) * len(header))


def _table(name: str, caption: str, header: tuple[str, ...], rows: list[list[Cell]], better: tuple[int, ...]) -> Table:
    return Table(f"{PREFIX}{name}", caption, header, with_best(rows, better), better)


def win_rates(summary: Mapping[str, Any]) -> Iterator[WinRates]:
    """The matrices of rankings and of peer examinations (combined, by mean and by vote)."""
    for name, metrics in summary["groups"].items():
        if metrics["protocol"] == "ranking":
            found = metrics["win_rates"]
            about = f"Group {name}: answers compared pair by pair in both orders, {metrics['n']} questions"
            yield WinRates(f".{name}", f": {name}", about, found["names"], found["rates"])
        if metrics["protocol"] == "peer_examination":
            for how, said in (("by_mean", "the mean of the examiners' win rates"), ("by_vote", "a vote per examiner")):
                rates = metrics["pairwise"]["combined"][how]["rates"]
                if any(value is not None for row in rates for value in row):
                    about = f"Group {name}: the combined examiner, {said}; {metrics['n']} questions"
                    heading = f": {name}, {how.replace('_', ' ')}"
                    yield WinRates(f".{name}.{how}", heading, about, list(metrics["full_marks"]), rates)


def limits(summary: Mapping[str, Any]) -> Iterator[str]:
    """What the examiners' own comparisons say about them, in sentences."""
    for name, metrics in summary["groups"].items():
        found = metrics.get("consistency")
        if metrics["protocol"] == "ranking" and found["inconsistency"] is not None:
            yield (
                f"{name}: the examiner contradicts itself in {found['contradictory']} of {found['known']} pairs when "
                f"the order is turned; it takes the first response in {found['first_share']:.0%} of its verdicts."
            )
            if found["inconsistency"] > MOSTLY and metrics["schedule_of_pairs"] == "merge_sort":
                yield (
                    f"{name}: a contradicted pair keeps the order that was drawn, so with this examiner merge sort's "
                    "final order, and every win rate that comes from it, is largely chance."
                )
        for judge, one in found.items() if metrics["protocol"] == "peer_examination" else ():
            if one["inconsistency"] is not None:
                said = f"contradicts itself in {one['contradictory']} of {one['known']} pairs when the order is turned"
                yield f"{name}: {judge} as an examiner {said}."
