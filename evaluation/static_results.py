"""What a static exam's answers come to: a choice from log-likelihoods, a record shown, the figures of a set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.items import LETTERS
from evaluation.show.blocks import Block, say
from evaluation.statistics import Interval, wilson
from serving.records import TokenScores

TIED = 1e-9
"""Relative difference below which two log-likelihoods are equal: they come from float32, whose last digit is at 6e-8,
and dividing equal ones by their lengths may change the last digit of a float64."""


def score(record: Mapping[str, Any]) -> float | None:
    """What an item earned: right 1, wrong 0, or its share where the best options are equally probable; None: nothing
    was found out."""
    found = record.get("credit", record["correct"])
    return None if found is None else float(found)


def shown(record: Mapping[str, Any]) -> list[Block]:
    """The reply, or the options' log-likelihoods; what was read, and the key."""
    found = []
    if record.get("reply") is not None:
        found.append(say("candidate", record["reply"], f"ended by {record.get('finish_reason', '-')}"))
    rows = []
    for letter, value in zip(LETTERS, record.get("log_likelihoods") or (), strict=False):
        marks = ["chosen"] if letter == record["prediction"] else []
        marks += ["key"] if letter == record["answer"] else []
        rows.append([letter, value, ", ".join(marks)])
    if rows:
        found.append({"t": "bars", "who": "log-likelihood of each option, nats", "rows": rows})
    read = record["prediction"] if record["prediction"] is not None else "nothing"
    result = f"{record['status']}: read {read}, key {record['answer']}"
    return [*found, say("result", "; ".join([result, *_notes(record)]))]


def _notes(record: Mapping[str, Any]) -> Iterator[str]:
    """What else became of an item; nothing of most."""
    if tied := record.get("tied"):
        yield f"{', '.join(tied)} are equally probable and earn {record.get('credit', 0.0):.3g}"
    if cut := record.get("cut"):
        yield f"the item is {cut} tokens longer than the context"
    elif record["status"] == "unscored":
        yield "the item is longer than the context"
    if dropped := record.get("exemplars_dropped"):
        yield f"{dropped} exemplars did not fit"
    if copies := record.get("exemplar_copies"):
        yield f"{copies} copies of it in the pool were no exemplars"


def figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    n = len(records)
    examined = [record for record in records if record["status"] != "unscored"]
    counts = {status: sum(record["status"] == status for record in records) for status in _STATES}
    earned, known = _earned(examined, ""), len(examined)
    figures: dict[str, Any] = {
        "n": n,
        "accuracy": earned / known if known else None,
        "accuracy_interval": _pair(wilson(earned, known)),
        **counts,
        "tied": sum("tied" in record for record in records),
        "unparsable_rate": counts["unparsable"] / known if known else None,
        # a model that gives no likelihood has not answered wrongly: it has not been examined
        "unscored": n - known + sum(r["status"] == "unparsable" and r["mode"] != "generate" for r in records),
        "overlong": n - known,
        "cut_and_scored": sum("cut" in record for record in examined),
        "fewer_exemplars": sum("exemplars_dropped" in record for record in examined),
        "exemplar_copies": sum("exemplar_copies" in record for record in records),
        "chance": math.fsum(1 / r["options"] for r in examined if r["options"]) / known if known else None,
    }
    for name in ("norm", "bytes"):
        if any(f"correct_{name}" in record for record in examined):
            earned = _earned(examined, f"_{name}")
            figures[f"acc_{name}"] = earned / known
            figures[f"acc_{name}_interval"] = _pair(wilson(earned, known))
    return figures


_STATES = ("right", "wrong", "unparsable")


def _earned(records: Sequence[Mapping[str, Any]], suffix: str) -> float:
    """Right answers, with the credit of tied ones; a whole number where there are none."""
    credit = math.fsum(record.get(f"credit{suffix}", 0.0) for record in records)
    right = sum(record.get(f"correct{suffix}") is True for record in records)
    return right + credit if credit else right


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def log_likelihood(table: TokenScores) -> float | None:
    """None where no token of the option was scored, or a value is NaN or infinite (a broken or overflowing model)."""
    value = table.answer_logprob()
    return value if "answer" in table.segments and math.isfinite(value) else None


def chosen(values: Sequence[float | None], key: str) -> dict[str, Any]:
    """The choice that log-likelihoods make: prediction and correct; of several equals tied, and credit where the key is
    one of them. Nothing is predicted if a value is missing, for then nothing is comparable."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return {"prediction": None, "correct": False}
    best = [LETTERS[i] for i, value in enumerate(known) if math.isclose(value, max(known), rel_tol=TIED)]
    if len(best) == 1:
        return {"prediction": best[0], "correct": best[0] == key}
    if key in best:
        return {"prediction": None, "correct": None, "tied": best, "credit": 1 / len(best)}
    return {"prediction": None, "correct": False, "tied": best}


def status(record: Mapping[str, Any]) -> str:
    if record["correct"] is None:
        return "tied"
    if record["prediction"] is None and "tied" not in record:
        return "unparsable"
    return "right" if record["correct"] else "wrong"
