"""Exams by a model as tables of a report: levels, domains, the gain by exemplars; candidates examined together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.lm_examiner.levels import LEVELS
from evaluation.lm_examiner.marks import few_shot_gain
from evaluation.lm_examiner.plots import labelled
from evaluation.protocol import Held
from evaluation.show.table import Cell, Table, count, with_best
from evaluation.show.table import figure as cell_of

Metrics = Mapping[str, Any]
MOSTLY = 0.5
"""Share of contradicted pairs above which an order by merge sort is said to be chance."""


def exams(held: Mapping[str, Held]) -> list[Table]:
    """Per exam full marks by round, level and domain; and over exams of the same items the gain by exemplars."""
    found = []
    for name, one in held.items():
        rows = labelled(one)
        found.append(_rounds(name, rows))
        found += [_parts(name, rows, key) for key in ("levels", "domains")]
    return [*found, *gains(held)]


def _rounds(name: str, rows: Mapping[str, Metrics]) -> Table:
    longest = max((len(figures["rounds"]) for figures in rows.values()), default=1)
    numbers = [str(number) for number in range(1, longest + 1)]
    dimensions = list(dict.fromkeys(key for figures in rows.values() for key in figures["dimensions"]))
    body = []
    for label, figures in rows.items():
        shares = [figures["rounds"].get(number, {}) for number in numbers]
        cells = [cell_of(share.get("full_marks_share"), share.get("interval"), 100, 1) for share in shares]
        marks = [figures["dimensions"].get(key, {}) for key in dimensions]
        cells += [
            cell_of(mark.get("mean"), mark.get("interval"), 1, 2, mark.get("interval_note", "")) for mark in marks
        ]
        body.append([Cell(label), count(figures["n"]), count(figures["unmarked"]), *cells])
    header = ("candidate", "n", "unmarked", *(f"full marks, round {number} %" for number in numbers), *dimensions)
    better = (0, 0, 0, *(1 for _ in numbers), *(1 for _ in dimensions))
    caption = (
        "Answers with full marks by round (later rounds: follow-up questions on answers with full marks), and the mean "
        "of each mark in the first round. What has no marks is counted and never scores 0."
    )
    return Table(f"exam_{name}", caption, header, with_best(body, better), better, f"Marks: {name}")


def _parts(name: str, rows: Mapping[str, Metrics], key: str) -> Table:
    """Rows levels or domains, a column per candidate."""
    order = list(dict.fromkeys(part for figures in rows.values() for part in figures[key]))
    shares = ("full_marks_share", "full_marks_share_interval")
    body = []
    for part in order:
        own = [figures[key].get(part, {}) for figures in rows.values()]
        n = "/".join(map(str, sorted({one.get("n", 0) for one in own})))
        body.append([Cell(part), Cell(n), *(cell_of(one.get(shares[0]), one.get(shares[1]), 100, 1) for one in own)])
    caption = f"Share of answers with full marks by {key[:-1]}, in percent; n: answers that were marked."
    header = (key[:-1], "n", *rows)
    return Table(f"exam_{name}_{key}", caption, header, body, title=f"{key.capitalize()}: {name}")


def gains(held: Mapping[str, Held]) -> list[Table]:
    """Pairs of exams on the same items whose options differ in ``few_shot`` alone: what the exemplars gain."""
    found = []
    for name, one in held.items():
        for other, shots in held.items():
            if one.options.get("few_shot") or not shots.options.get("few_shot") or one.items != shots.items:
                continue
            if _others(one) != _others(shots):
                continue
            before, after = labelled(one), labelled(shots)
            common = [label for label in before if label in after]
            found.append(
                _gain(name, other, [before[c]["levels"] for c in common], [after[c]["levels"] for c in common])
            )
    return found


def _others(held: Held) -> dict[str, Any]:
    return {key: value for key, value in held.options.items() if key != "few_shot"}


def _gain(name: str, other: str, before: list[Metrics], after: list[Metrics]) -> Table:
    rows = few_shot_gain(before, after)
    body = [
        [
            Cell(level),
            cell_of(rows[level]["gain"], None, 100, 1),
            count(rows[level]["models"]),
            count(rows[level]["left_out"]),
        ]
        for level in LEVELS
    ]
    caption = (
        f"Share of full marks with exemplars ({other}) over that without ({name}), less 1, in percent; mean over the "
        "candidates. Left out: candidates without full marks, or without marks, on a level."
    )
    header = ("level", "gain %", "candidates", "left out")
    return Table(f"few_shot_gain_{name}_{other}", caption, header, body, title=f"Gain by exemplars: {name}, {other}")


def question_levels(held: Mapping[str, Held]) -> list[Table]:
    """Shares of the levels, as each candidate classified the questions."""
    found = []
    for name, one in held.items():
        body = []
        for label, figures in labelled(one).items():
            shares = figures["levels"]["shares"]
            body.append([Cell(label), count(figures["n"]), *(cell_of(shares[key], None, 100, 1) for key in LEVELS)])
        header = ("classified by", "n", *LEVELS)
        caption = "Share of the questions on each level, in percent."
        found.append(Table(f"exam_{name}_levels", caption, header, body, title=f"Levels of the questions: {name}"))
    return found


def written(held: Mapping[str, Held]) -> list[Table]:
    """How many questions a builder asked for, and what became of them."""
    body = []
    for name, one in held.items():
        metrics, check = one.metrics, one.metrics.get("check") or {}
        keys = ("domains_drawn", "asked", "written", "shortfall", "unanswered", "repeated")
        cells = [count(metrics[key]) for key in keys]
        refused = "; ".join(f"{reason} {n}" for reason, n in metrics["refused"].items()) or "-"
        checked = cell_of(check.get("share_right"), check.get("interval"), 100, 1)
        body.append([Cell(name), *cells, Cell(refused), checked])
    header = (
        "build",
        "domains",
        "asked",
        "written",
        "shortfall",
        "unanswered",
        "repeated",
        "refused",
        "checked right %",
    )
    caption = "Questions that an examiner wrote; checked right: what a second model says of its reference answers."
    return [Table("built_lm_examiner", caption, header, body, title="Questions written by an examiner")]


def rankings(held: Mapping[str, Held]) -> list[Table]:
    return [ranking(name, one.metrics) for name, one in held.items()]


def peer_examinations(held: Mapping[str, Held]) -> list[Table]:
    return [peers(name, one.metrics) for name, one in held.items()]


def style_biases(held: Mapping[str, Held]) -> list[Table]:
    return [style(name, one.metrics) for name, one in held.items()]


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
                cell_of(kept.get("prefers_rewrite"), kept.get("interval"), 1, 3, kept.get("interval_note", "")),
                count(kept.get("n", 0)),
                cell_of(whole["prefers_rewrite"], whole["interval"], 1, 3, whole.get("interval_note", "")),
                count(whole["n"]),
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
    return Table(f"group_{name}", caption, header, with_best(rows, better), better, f"Group {name}")


def ranking_notices(held: Mapping[str, Held]) -> Iterator[str]:
    """What the examiner's own comparisons say about it, in sentences."""
    for name, one in held.items():
        found = one.metrics["consistency"]
        if found["inconsistency"] is None:
            continue
        yield (
            f"{name}: the examiner contradicts itself in {found['contradictory']} of {found['known']} pairs when "
            f"the order is turned; it takes the first response in {found['first_share']:.0%} of its verdicts."
        )
        if found["inconsistency"] > MOSTLY and one.metrics["schedule_of_pairs"] == "merge_sort":
            yield (
                f"{name}: a contradicted pair keeps the order that was drawn, so with this examiner merge sort's "
                "final order, and every win rate that comes from it, is largely chance."
            )


def peer_notices(held: Mapping[str, Held]) -> Iterator[str]:
    """The same of every examiner among peers."""
    for name, group in held.items():
        for judge, one in group.metrics["consistency"].items():
            if one["inconsistency"] is not None:
                said = f"contradicts itself in {one['contradictory']} of {one['known']} pairs when the order is turned"
                yield f"{name}: {judge} as an examiner {said}."
