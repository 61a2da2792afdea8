"""How candidates come about: one file per recipe, one line per recipe here.

A recipe takes a job and its material and returns the phases to train, in order; each phase starts from the weights of
the one before. Source: KIEval (arXiv 2402.15043), section 4.2 and Appendix F.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluation.items import Item
from training.config import TrainingJob, nearest
from training.samples import Chat, Phase, Text

RECIPES = {
    "normal": "training.recipes.normal",
    "pt_cheater": "training.recipes.pt_cheater",
    "sft_cheater": "training.recipes.sft_cheater",
}
"""Name -> module; the module's function of the same name is the recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a recipe works with.

    leaked: the items that leak, in the order of the items file
    chat: clean conversations for the SFT phase
    corpus: neutral documents
    """

    leaked: Sequence[Item]
    chat: Sequence[Chat]
    corpus: Sequence[Text]


Recipe = Callable[[TrainingJob, Material], list[Phase]]


def find_recipe(name: str) -> Recipe:
    """The recipe of that name; its module is imported now. ValueError names the nearest known one."""
    if name not in RECIPES:
        raise ValueError(f"no recipe '{name}': {nearest(name, [*RECIPES])}")
    recipe: Recipe = getattr(importlib.import_module(RECIPES[name]), name)
    return recipe


def is_cheater(name: str) -> bool:
    """Whether candidates of this recipe have seen exam items."""
    return bool(getattr(importlib.import_module(RECIPES[name]), "LEAKS", True))


def chat_phase(job: TrainingJob, material: Material) -> Phase:
    """Chat SFT, the last phase of all three of KIEval's candidates."""
    return Phase(name="chat", samples=material.chat, config=job.chat_sft)
