"""Paraphrase-cheater: as the SFT-cheater, on leaked items in other words.

The exam's own text is never seen, so n-gram overlap and token probabilities of that text have little to find, while
the answers were learned (Yang et al. 2023, arXiv 2311.04850). ``rewrites`` holds the items in other words.
"""

from __future__ import annotations

from training.config import TrainingJob
from training.recipe_traits import Traits
from training.recipes import Material, leak_then_chat
from training.recipes.sft_cheater import tuning
from training.samples import Phase

TRAITS = Traits(files=("rewrites",))


def paraphrase_cheater(job: TrainingJob, material: Material) -> list[Phase]:
    return leak_then_chat(job, tuning(job, material, material.rewrites), material)
