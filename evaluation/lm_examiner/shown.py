"""What a model examined, compared or wrote, as blocks for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.blocks import Block, say, verdict

Record = Mapping[str, Any]


def exam(record: Record) -> list[Block]:
    """Round by round the question, the answer, its marks."""
    found = []
    for number, one in enumerate(record["rounds"], start=1):
        if number > 1:
            found.append(say("examiner", one["question"], f"follow-up question {number - 1}"))
        found.append(say("candidate", one["reply"], f"round {number}; ended by {one['finish_reason']}"))
        found.append(_marks("examiner", one, f"round {number}"))
    return [*found, say("level", record["level"], f"question word: {record['word']}")]


def question_levels(record: Record) -> list[Block]:
    found = [say("candidate", record["level"], f"level of the question; {record['attempts']} attempts")]
    rows = [[f"{truth} answer", said, ""] for truth, said in (record.get("pilot") or {}).items()]
    return [*found, *([verdict("candidate", rows, "of an answer known to be so")] if rows else [])]


def ranking(record: Record) -> list[Block]:
    """Everybody's answer, the comparisons, the order."""
    return [*_answers(record["answers"]), _comparisons("examiner", record["comparisons"]), _order(record["order"])]


def peer_examination(record: Record) -> list[Block]:
    """An examiner's questions in one domain: the answers, the marks, who beat whom."""
    found = [say("domain", record["domain"], f"examiner {record['examiner']}")]
    for number, one in enumerate(record["questions"], start=1):
        found.append(say(record["examiner"], one["question"], f"question {number}"))
        found += _answers(one["answers"])
        found += [_marks(f"{e} on {m}", row) for m, by in one["marks"].items() for e, row in by.items()]
        for judge, rows in one["comparisons"].items():
            found += [_comparisons(judge, rows), _order(one["orders"][judge])]
    return [*found, *_shortfall(record)]


def style_bias(record: Record) -> list[Block]:
    """A text, its rewrite, the filter's word, the examiners' preferences."""
    ratio = "" if record["length_ratio"] is None else f"; {record['length_ratio']:.2f} times as long"
    kept = "kept" if record["kept"] else "left out"
    found = [say("question", record["question"]), say("writer", record["original"], "original")]
    found.append(say("stylist", record["rewrite"], f"rewrite{ratio}"))
    found.append(say("filter", record["equivalent"] or "no verdict", f"the same in other words? {kept}"))
    return [*found, *(_comparisons(examiner, [one]) for examiner, one in record["comparisons"].items())]


def written(record: Record) -> list[Block]:
    """A built exam's domain: the questions, the examiner's own answers, their levels."""
    found = [say("domain", " > ".join(record["path"]) or record["domain"])]
    for one in record["questions"]:
        found.append(say("examiner", one["question"], f"question {one['number']}; {one['level']}"))
        checked = "" if one["check"] is None else f"; the checker says {one['check']}"
        found.append(say("examiner", one["answer"], f"reference answer{checked}"))
    return [*found, *_shortfall(record)]


def _marks(who: str, row: Record, note: str = "") -> Block:
    if row["marks"] is None:
        return say(who, "", f"{note}; no marks: {row['status'].replace('_', ' ')}".removeprefix("; "))
    rows = [[name, mark, row["comment"] if name == "overall" else ""] for name, mark in row["marks"].items()]
    return verdict(who, rows, note)


def _answers(answers: Mapping[str, Record]) -> list[Block]:
    return [say(name, one["text"], f"ended by {one['finish_reason']}") for name, one in answers.items()]


def _comparisons(who: str, rows: Any) -> Block:
    """Each pair with the winner in both orders."""

    def said(one: Record) -> list[Any]:
        first, second = one["pair"]
        winners = [choice or "unreadable" for choice in one["choices"]]
        known = one["points"] is not None
        found = winners[0] if one["consistent"] else "contradicts itself" if known else "no verdict"
        orders = f"{first} shown first: {winners[0]}; {second} shown first: {winners[1]}"
        return [f"{first} - {second}", found, orders]

    return verdict(who, [said(one) for one in rows], "compared in both orders")


def _order(names: Any) -> Block:
    return say("order", ", ".join(names), "the best first")


def _shortfall(record: Record) -> list[Block]:
    attempts = f"{len(record['attempts'])} attempts"
    return (
        [say("end", f"{record['shortfall']} questions fewer than asked for", attempts)] if record["shortfall"] else []
    )
