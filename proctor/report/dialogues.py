"""A record as blocks for a reader, by protocol; a protocol that is not listed here is shown as its record stands.

A block is a dict: ``{"t": "say", "who", "x", "n"}`` something said, with a note; ``{"t": "verdict", "who", "rows":
[[aspect, score, comment]], "n"}``; ``{"t": "bars", "who", "rows": [[label, value, mark]]}`` log-likelihoods of options;
``{"t": "tokens", "who", "rows": [[token, log-probability, rank]]}``; ``{"t": "data", "who", "x"}`` JSON as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evaluation.items import LETTERS, Item
from evaluation.kieval.shown import _kieval
from evaluation.show.blocks import Block, _as_it_stands, say


def blocks(protocol: str, record: Mapping[str, Any], item: Item | None) -> list[Block]:
    """The item, then what the record says of it."""
    shown = [_question(item)] if item is not None else []
    try:
        return [*shown, *SHOWN.get(protocol, _as_it_stands)(record)]
    except (KeyError, TypeError, AttributeError):  # another version of the protocol wrote it
        return [*shown, *_as_it_stands(record)]


def stop_reason(record: Mapping[str, Any]) -> str:
    """Why it ended: KIEval's reason, else how the reply or the extraction ended; "" if nothing says."""
    return str(record.get("stop_reason") or record.get("finish_reason") or record.get("status") or "")


def _question(item: Item) -> Block:
    lines = [item.context, item.question] if item.context else [item.question]
    lines += [f"{LETTERS[i]}. {choice}" for i, choice in enumerate(item.choices)]
    key = f"key: {item.answer}"
    return say("item", "\n".join(lines), f"{item.subject}; {key}".removeprefix("; "))


def _static(record: Mapping[str, Any]) -> list[Block]:
    found = []
    if record.get("reply") is not None:
        found.append(say("candidate", record["reply"], f"ended by {record.get('finish_reason', '-')}"))
    values = record.get("log_likelihoods")
    if values:
        rows = []
        for i, value in enumerate(values):
            letter = LETTERS[i]
            marks = ["chosen"] if letter == record["prediction"] else []
            marks += ["key"] if letter == record["answer"] else []
            rows.append([letter, value, ", ".join(marks)])
        found.append({"t": "bars", "who": "log-likelihood of each option, nats", "rows": rows})
    read = record["prediction"] if record["prediction"] is not None else "nothing"
    result = f"{record['status']}: read {read}, key {record['answer']}"
    found.append(say("result", "; ".join([result, *_notes(record)])))
    return found


def _notes(record: Mapping[str, Any]) -> Iterator[str]:
    """What else became of a static item; nothing of most."""
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


def _mt_bench(record: Mapping[str, Any]) -> list[Block]:
    found = []
    for number, turn in enumerate(record["turns"], start=1):
        found.append(say("user", turn["question"], f"turn {number}"))
        found.append(say("candidate", turn["reply"], f"ended by {turn['finish_reason']}"))
        row = [["rating", turn["rating"], turn.get("comment") or ""]]
        found.append({"t": "verdict", "who": "evaluator", "rows": row, "n": f"turn {number}; 1 to 10"})
    return found


def _pairwise(record: Mapping[str, Any]) -> list[Block]:
    found = []
    for number, turn in enumerate(record["turns"], start=1):
        found.append(say("user", turn["question"], f"turn {number}"))
        found.append(say("candidate", turn["reply"], f"ended by {turn['finish_reason']}"))
        found.append(say("baseline", turn["baseline"]))
        rows = [[order.replace("_", " "), v["choice"], v.get("comment") or ""] for order, v in turn["verdicts"].items()]
        result = f"turn {number}; {turn['result'] or 'no result'}{'; inconsistent' if turn['inconsistent'] else ''}"
        found.append({"t": "verdict", "who": "evaluator", "rows": rows, "n": result})
    return found


SHOWN: dict[str, Callable[[Mapping[str, Any]], list[Block]]] = {
    "static": _static,
    "kieval": _kieval,
    "mt_bench": _mt_bench,
    "pairwise": _pairwise,
}
