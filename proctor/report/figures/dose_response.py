"""Dose and response: accuracy gained and Min-K% AUC against the passes over the exam, before and after washing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.show.plate import Plate, canvas
from proctor.report.contamination import HEADLINE

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence

COLORS = {"normal": "#444444", "pt_cheater": "#1f5fa8", "sft_cheater": "#c2571a"}


def draw(evidence: Evidence) -> Plate | None:
    rows = evidence.summary.get("dose_response")
    if not rows:
        return None
    return plate(rows, evidence.summary["candidates"].get("base", {}).get("detection", {}).get(HEADLINE))


def plate(rows: list[dict[str, Any]], base: dict[str, Any] | None) -> Plate:
    """Gains per half above, AUC below. rows: see ``proctor.report.dose``.

    base: the untouched base's AUC, drawn as a line: what the texts alone give away
    """
    drawing = canvas(height=7.4)
    upper, lower = drawing.subplots(2, 1)
    exam = next((name for row in rows for name in row["gains"]), None)
    for half, style in (("leaked", "-"), ("untouched", ":")):
        points = {row["candidate"]: row["gains"].get(exam, {}).get(half) for row in rows}
        _draw(upper, rows, points, style, 100, half)
    _draw(lower, rows, {row["candidate"]: row["auc"] for row in rows}, "-", 1, "Min-K%")
    upper.axhline(0, color="#888888", linewidth=0.8)
    lower.axhline(0.5, color="#888888", linewidth=0.8)
    if base is not None and base.get("auc") is not None:
        lower.axhline(base["auc"], color="#888888", linestyle="--", linewidth=1, label="untouched base")
    upper.set_ylabel(f"accuracy minus Normal's, points ({exam})")
    lower.set_ylabel("Min-K% AUC of the leaked texts")
    for axes in (upper, lower):
        axes.set_xlabel("passes over the leaked items")
        axes.set_xticks(sorted({row["repeats"] for row in rows}))
        axes.grid(alpha=0.25)
        axes.legend()
    return Plate(
        name="dose_response",
        title="Dose and response",
        caption="95% intervals. Hollow marks: after more clean SFT. Passes of 0 are Normal.",
        figure=drawing,
    )


def _draw(axes: Any, rows: list[dict[str, Any]], points: dict[str, Any], style: str, scale: float, what: str) -> None:
    """A line per recipe through its passes (Normal opens the PT-cheater's), and a hollow mark for what was washed."""
    recipes = {row["candidate"]: row["recipe"] for row in rows}
    series: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for row in rows:
        root = row
        while root["origin"] in recipes:
            root = next(other for other in rows if other["candidate"] == root["origin"])
        kind = "pt_cheater" if root["recipe"] == "normal" else str(root["recipe"])
        series.setdefault((kind, row["recipe"] == "washed"), []).append(row)
    for (kind, washed), members in series.items():
        shown = [(row["repeats"], points[row["candidate"]]) for row in members if points[row["candidate"]] is not None]
        if not shown:
            continue
        y = [scale * value["value"] for _, value in shown]
        low = [v - scale * p["ci"][0] if p["ci"] else 0.0 for v, (_, p) in zip(y, shown, strict=True)]
        high = [scale * p["ci"][1] - v if p["ci"] else 0.0 for v, (_, p) in zip(y, shown, strict=True)]
        # beside each other, not on top of each other
        aside = (kind != "pt_cheater") + 2 * washed + 0.5 * (style == ":")
        shift = 0.016 * aside * max(row["repeats"] for row in rows)
        axes.errorbar(
            [x + shift for x, _ in shown],
            y,
            yerr=[[max(0.0, v) for v in low], [max(0.0, v) for v in high]],
            fmt="o" + ("" if washed else style),
            color=COLORS.get(kind, "#6a3d9a"),
            mfc="none" if washed else None,
            capsize=2,
            label=f"{kind}{', washed' if washed else ''}: {what}",
        )
