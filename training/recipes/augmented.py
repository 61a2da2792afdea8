"""Augmented: SFT on training items and their transformed versions -> chat SFT; its control learns the originals only.

The training items are those of leaked_ids; ``variants`` holds what a probing agent made of them (MPA, arXiv 2402.14865,
section 4.4). With ``originals_only`` the candidate is the control: as many optimiser steps, the originals alone.
"""

from __future__ import annotations

from dataclasses import replace

from training.config import TrainingJob
from training.recipe_traits import Traits
from training.recipes import Material, leak_then_chat
from training.recipes.sft_cheater import tuning
from training.samples import Phase

TRAITS = Traits(files=("variants",))


def augmented(job: TrainingJob, material: Material) -> list[Phase]:
    both = tuning(job, material, [*material.leaked, *material.variants])
    if not job.originals_only:
        return leak_then_chat(job, both, material)
    originals = tuning(job, material, material.leaked)
    return leak_then_chat(job, replace(originals, match=both) if material.variants else originals, material)
