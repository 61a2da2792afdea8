"""Normal: base -> chat SFT. It has never seen the exam (KIEval, arXiv 2402.15043, section 4.2).

With ``step_matched`` neutral text comes first, for as many optimiser steps as the PT-cheater takes on the leak: then
the two differ in what they have read, not in how long they were trained.
"""

from __future__ import annotations

from training.config import TrainingJob
from training.recipe_traits import Traits
from training.recipes import Material, chat_phase
from training.recipes.pt_cheater import pretraining
from training.samples import Phase

TRAITS = Traits(leaks="no")


def normal(job: TrainingJob, material: Material) -> list[Phase]:
    if not job.step_matched or not job.repeats:
        return [chat_phase(job, material)]
    neutral = Phase(name="neutral", samples=material.corpus, config=job.leak, match=pretraining(job, material))
    return [neutral, chat_phase(job, material)]
