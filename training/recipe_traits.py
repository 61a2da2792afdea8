"""The recipes by name, and what each declares about itself without being loaded."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Literal

RECIPES = {
    "normal": "training.recipes.normal:normal",
    "pt_cheater": "training.recipes.pt_cheater:pt_cheater",
    "sft_cheater": "training.recipes.sft_cheater:sft_cheater",
    "mt_bench_cheater": "training.recipes.mt_bench_cheater:mt_bench_cheater",
    "washed": "training.recipes.washed:washed",
    "paraphrase_cheater": "training.recipes.paraphrase_cheater:paraphrase_cheater",
    "augmented": "training.recipes.augmented:augmented",
}
"""Name -> module and the function that is the recipe."""


Leaks = Literal["no", "items", "answers", "origin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a recipe declares about itself, in its module's ``TRAITS``.

    leaks: which items it has seen: none; those of leaked_ids; those whose question stands in ``answers``; its origin's
    files: keys of the job that name files which it reads, beside chat data and corpus
    origin: whether it goes on from another candidate
    """

    leaks: Leaks = "items"
    files: tuple[str, ...] = ()
    origin: Literal["refused", "optional", "needed"] = "refused"


def traits(name: str) -> Traits:
    """What the recipe declares about itself."""
    found: Traits = getattr(importlib.import_module(RECIPES[name].partition(":")[0]), "TRAITS", Traits())
    return found
