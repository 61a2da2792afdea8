"""What people check: whether questions are usable, which reference answers are right, and what answers are worth.

Each is a sheet (``evaluation.human_rating.sheet``) and a key that says what its ids stand for. Usability and references
are rated 0 or 1; of several annotators the majority counts, a tie counts as 0. Candidates' answers are rated 0 to
max_score, and become a matrix by their mean over annotators.

Published: 94.0% of general questions usable; references usable 84.7%, of the best single model's answers 78.8%, both
without the 15 of 150 questions that no model answered (IDGen, arXiv 2409.18892).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from evaluation.human_rating.conversations import Conversation
from evaluation.human_rating.sheet import Ratings
from evaluation.item_analysis.matrix import Matrix
from evaluation.items import Item
from evaluation.statistics import wilson
from serving.records import derive_seed

Kind = Literal["usability", "references", "answers"]
PUBLISHED = {"usability": 0.94, "references": 0.847, "best_single_model": 0.788}
Key = dict[str, Any]


def usability_sheet(items: Sequence[Item]) -> tuple[dict[str, Conversation], list[Key]]:
    """Every question by itself."""
    chosen: dict[str, Conversation] = {}
    key: list[Key] = []
    for number, item in enumerate(items, start=1):
        name = f"q{number:04d}"
        chosen[name] = _shown(item.question, "")
        key.append({"id": name, "kind": "usability", "item_id": item.id})
    return chosen, key


def references_sheet(
    items: Sequence[Item], records: Sequence[Mapping[str, Any]], seed: int
) -> tuple[dict[str, Conversation], list[Key]]:
    """Every answer to every item, not only the chosen one, in an order drawn by the seed; equal answers once."""
    chosen: dict[str, Conversation] = {}
    key: list[Key] = []
    for item in items:
        found = _reference(item, records)
        texts: dict[str, list[str]] = {}
        for answer in found["answers"]:
            texts.setdefault(answer["text"], []).append(answer["role"])
        best = found["answers"][found["chosen"]]["text"]
        order = sorted(texts, key=lambda text: derive_seed(seed, item.id, text, 0))
        for text in order:
            name = f"a{len(chosen) + 1:04d}"
            chosen[name] = _shown(item.question, text)
            cut = any(answer.get("cut", False) for answer in found["answers"] if answer["text"] == text)
            row = {"id": name, "kind": "references", "item_id": item.id, "text": text, "cut": cut}
            key.append({**row, "roles": texts[text], "chosen": text == best})
    return chosen, key


def answers_sheet(
    records: Mapping[str, Sequence[Mapping[str, Any]]], items: Mapping[str, Item], seed: int
) -> tuple[dict[str, Conversation], list[Key]]:
    """The candidates' answers in an exam of protocol ``idgen``, the reference above each; whose they are is not told.

    ValueError for records that hold no answer.
    """
    rows = [(candidate, record) for candidate, part in records.items() for record in part if record.get("reply")]
    if not rows:
        raise ValueError("the records hold no answers; give those of an exam of protocol idgen")
    rows.sort(key=lambda row: (row[1]["item_id"], derive_seed(seed, row[0], row[1]["item_id"], 0)))
    chosen: dict[str, Conversation] = {}
    key: list[Key] = []
    for number, (candidate, record) in enumerate(rows, start=1):
        name = f"r{number:05d}"
        item = items.get(record["item_id"])
        reference = "" if item is None else "".join(item.references[:1]) or item.answer_text
        shown = _shown(record["question"], record["reply"])
        chosen[name] = replace(shown, context=f"Reference answer: {reference}" if reference else "")
        row = {"id": name, "kind": "answers", "candidate": candidate, "item_id": record["item_id"]}
        key.append({**row, "max_score": record["max_score"]})
    return chosen, key


def usability_figures(key: Sequence[Key], ratings: Ratings) -> dict[str, Any]:
    """Share of usable questions (Wilson's interval), over those that somebody rated."""
    verdicts = [verdict for row in key if (verdict := majority(row["id"], ratings)) is not None]
    return {**_share(verdicts), "unrated": len(key) - len(verdicts), "published": PUBLISHED["usability"]}


def reference_figures(key: Sequence[Key], ratings: Ratings) -> dict[str, Any]:
    """Shares of right answers: of those chosen, and of each model's, with and without questions nobody got right."""
    items = dict.fromkeys(row["item_id"] for row in key)
    verdicts = {row["id"]: majority(row["id"], ratings) for row in key}
    rated = [item for item in items if all(verdicts[row["id"]] is not None for row in key if row["item_id"] == item)]
    solved = {row["item_id"] for row in key if verdicts[row["id"]]}
    roles = sorted({role for row in key for role in row["roles"]})

    def shares(among: Sequence[str]) -> dict[str, Any]:
        rows = [row for row in key if row["item_id"] in among]
        by_role = {role: [bool(verdicts[row["id"]]) for row in rows if role in row["roles"]] for role in roles}
        return {
            "chosen": _share([bool(verdicts[row["id"]]) for row in rows if row["chosen"]]),
            "models": {role: _share(values) for role, values in by_role.items()},
        }

    return {
        "items": len(items),
        "rated": len(rated),
        "without_a_right_answer": sum(item not in solved for item in rated),
        "all": shares(rated),
        "answered": shares([item for item in rated if item in solved]),
        "published": {name: PUBLISHED[name] for name in ("references", "best_single_model")},
    }


def checked_items(items: Sequence[Item], key: Sequence[Key], ratings: Ratings) -> tuple[list[Item], dict[str, int]]:
    """The items with the references that people found right: a wrong one is replaced by a right answer, and an item
    without any is dropped. Items that nobody rated stay as they are. Also how many were {kept, replaced, dropped}."""
    kept: list[Item] = []
    counts = {"kept": 0, "replaced": 0, "dropped": 0, "unrated": 0}
    for item in items:
        rows = [row for row in key if row["item_id"] == item.id]
        verdicts = [majority(row["id"], ratings) for row in rows]
        right = [row for row, verdict in zip(rows, verdicts, strict=True) if verdict]
        if all(verdict is None for verdict in verdicts):
            counts["unrated"] += 1
            kept.append(item)
        elif any(row["chosen"] for row in right):
            counts["kept"] += 1
            kept.append(item)
        elif right:
            counts["replaced"] += 1
            kept.append(_with_reference(item, right[0]["text"], right[0].get("cut", False)))
        else:
            counts["dropped"] += 1
    return kept, counts


def answers_matrix(key: Sequence[Key], ratings: Ratings) -> Matrix:
    """Candidates x items: the mean over annotators; NaN where nobody rated."""
    candidates = tuple(dict.fromkeys(row["candidate"] for row in key))
    items = tuple(dict.fromkeys(row["item_id"] for row in key))
    scores = np.full((len(candidates), len(items)), np.nan)
    for row in key:
        given = [table[row["id"]] for table in ratings.values() if row["id"] in table]
        if given:
            scores[candidates.index(row["candidate"]), items.index(row["item_id"])] = float(np.mean(given))
    return Matrix(candidates=candidates, items=items, scores=scores, max_score=float(key[0]["max_score"]))


def majority(name: str, ratings: Ratings) -> bool | None:
    """Whether more than half of those who rated it say 1; None if nobody did."""
    given = [table[name] for table in ratings.values() if name in table]
    return None if not given else 2 * sum(given) > len(given)


def _with_reference(item: Item, text: str, cut: bool) -> Item:
    """The key goes with the reference it was read from."""
    from evaluation.extraction.numbers import extract_number
    from evaluation.items import make_item

    number = extract_number(text, cut_off=cut) if item.form == "number" else None
    made = make_item(
        benchmark=item.benchmark,
        split=item.split,
        subject=item.subject,
        question=item.question,
        choices=(),
        answer=number or "",
        form="text" if number is None else "number",
        references=(text,),
        source_id=item.source_id,
    )
    return replace(made, id=item.id)


def _reference(item: Item, records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for record in records:
        for draft in record["drafts"]:
            if record["item_id"] == item.source_id and draft["question"] == item.question and draft["reference"]:
                found: Mapping[str, Any] = draft["reference"]
                return found
    raise ValueError(f"the records hold no reference answers to item {item.id}; give those of the build that made it")


def _shown(question: str, reply: str) -> Conversation:
    return Conversation(benchmark="idgen", candidate="", part="reply", question=question, reply=reply)


def _share(values: Sequence[bool]) -> dict[str, Any]:
    interval = wilson(sum(values), len(values))
    return {
        "n": len(values),
        "share": sum(values) / len(values) if values else None,
        "interval": None if interval is None else list(interval),
    }
