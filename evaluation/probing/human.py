"""The human check of a probed benchmark: two yes/no questions on pairs of original and rewritten item.

MPA (arXiv 2402.14865, section 4.4) had people judge whether both ask for the same concept (published: 0.94) and whether
the answer is still right (0.97). Here: ``same``: does it test the same concept? ``right``: is the marked answer still
right, and the only right one? Sheets are CSV for any spreadsheet program; the annotator sees neither the principles
nor whether code and judge accepted the item.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evaluation.agreement.kappa import fleiss_kappa, krippendorff_alpha, pairwise_kappa
from evaluation.human_rating.sheet import YES_NO, check_annotators, read_columns, sheet_text
from evaluation.items import LETTERS, Item
from evaluation.probing.version import ABILITY_OF, SETS, lettered
from evaluation.statistics import wilson

QUESTIONS: Final = {
    "same": "Does the rewritten item test the same concept as the original? (yes/no)",
    "right": "Is the marked answer still right, and the only right one? (yes/no)",
}
FIXED: Final = ("id", "original", "original_answer", "rewritten", "rewritten_answer")
_COLUMN = re.compile(rf"(?:{'|'.join(QUESTIONS)}) \(.*\)")

Answers = dict[str, dict[str, dict[str, bool]]]
"""Question -> annotator -> id -> answer."""


def draw_pairs(sets: Mapping[str, Sequence[tuple[Item, Item]]], n: int, seed: int) -> list[dict[str, Any]]:
    """``n`` pairs (vanilla, probed), as evenly over the sets as they allow, shuffled; each with an id of its own.

    sets: by the named set (``LU``, ``p4``; a number behind it, ``LU.set-2``, is allowed)
    Pairs in which nothing was changed are left out. ValueError if no pair is left.
    """
    generator = random.Random(seed)  # noqa: S311 - a draw, not a secret
    pools = {}
    for name in sorted(sets):
        changed = [(a, b) for a, b in sets[name] if (a.question, a.choices) != (b.question, b.choices)]
        generator.shuffle(changed)
        pools[name] = changed
    chosen: list[tuple[str, Item, Item]] = []
    while len(chosen) < n and any(pools.values()):
        for name, pool in pools.items():
            if pool and len(chosen) < n:
                chosen.append((name, *pool.pop()))
    if not chosen:
        raise ValueError("there is no pair to check: no probed item differs from its original")
    generator.shuffle(chosen)
    return [
        {
            "id": f"p{number:04d}",
            "set": name,
            "ability": ability(name.partition(".")[0]),
            "item_id": vanilla.id,
            "probed_id": probed.id,
            "benchmark": vanilla.benchmark,
            "original": _shown(vanilla),
            "original_answer": _key(vanilla),
            "rewritten": _shown(probed),
            "rewritten_answer": _key(probed),
        }
        for number, (name, vanilla, probed) in enumerate(chosen, start=1)
    ]


def ability(probe: str) -> str:
    """LU, PS or DK, where all principles of a named set belong to one; else ``mixed``."""
    abilities = {ABILITY_OF[principle] for principle in SETS.get(probe, ())}
    return abilities.pop() if len(abilities) == 1 else "mixed"


def write_sheet(pairs: Sequence[Mapping[str, Any]], annotators: Sequence[str]) -> str:
    """The sheet as CSV text: two columns per annotator, ``same (NAME)`` and ``right (NAME)``."""
    check_annotators(annotators, FIXED)
    columns = [f"{question} ({name})" for name in annotators for question in QUESTIONS]
    return sheet_text(FIXED, ([pair[name] for name in FIXED] for pair in pairs), columns)


def read_sheets(paths: Sequence[Path], ids: Sequence[str]) -> Answers:
    """The answers of filled sheets; blank cells are no answer.

    ValueError names file, line and column of anything but yes, no or blank, of an id that the key lacks or that stands
    twice, and of an answer that contradicts another sheet's.
    """
    answers: Answers = {question: {} for question in QUESTIONS}
    for column, given in read_columns(paths, ids, YES_NO, lambda name: _COLUMN.fullmatch(name) is not None).items():
        question, _, annotator = column.removesuffix(")").partition(" (")
        answers[question][annotator] = given
    if not any(answers[question] for question in QUESTIONS):
        raise ValueError("no sheet holds an answer: fill the columns 'same (NAME)' and 'right (NAME)' with yes or no")
    return answers


def figures(pairs: Sequence[Mapping[str, Any]], answers: Answers, groups: Mapping[str, str]) -> dict[str, Any]:
    """By question: the rate of yes over all answers, per ability and per group of annotators, and the agreement.

    groups: annotator -> group; who has none is in ``others``. An answer counts once per annotator.
    """
    ability_of = {pair["id"]: pair["ability"] for pair in pairs}
    result: dict[str, Any] = {"pairs": len(pairs)}
    for question, by_annotator in answers.items():
        rows = [(annotator, name, value) for annotator, given in by_annotator.items() for name, value in given.items()]
        labels = {
            annotator: [given.get(pair["id"]) for pair in pairs] for annotator, given in sorted(by_annotator.items())
        }
        result[question] = {
            **_rate([value for _, _, value in rows]),
            "abilities": {
                kind: _rate([value for _, name, value in rows if ability_of[name] == kind])
                for kind in sorted(set(ability_of.values()))
            },
            "groups": {
                group: _rate([value for who, _, value in rows if groups.get(who, "others") == group])
                for group in sorted({groups.get(who, "others") for who in by_annotator})
            },
            "annotators": {who: _rate(list(given.values())) for who, given in sorted(by_annotator.items())},
            "agreement": None
            if len(labels) < 2
            else {
                "cohen_kappa": pairwise_kappa(labels),
                "fleiss_kappa": fleiss_kappa(list(labels.values())),
                "krippendorff_alpha": krippendorff_alpha(list(labels.values())),
            },
        }
    return result


def _rate(values: Sequence[bool]) -> dict[str, Any]:
    interval = wilson(sum(values), len(values))
    return {
        "yes": sum(values) / len(values) if values else None,
        "interval": list(interval) if interval else None,
        "n": len(values),
    }


def _shown(item: Item) -> str:
    return "\n".join(part for part in (item.context, item.question, lettered(item.choices)) if part)


def _key(item: Item) -> str:
    return f"{LETTERS[item.answer_index]}. {item.answer_text}" if item.choices else item.answer
