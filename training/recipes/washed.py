"""Washed: any cheater -> more clean SFT. Does the evidence fade while the advantage stays?

``origin`` is the cheater; ``chat_skip`` takes conversations that it has not been trained on yet.
"""

from __future__ import annotations

from training.config import TrainingJob
from training.recipe_traits import Traits
from training.recipes import Material
from training.samples import Phase

TRAITS = Traits(leaks="origin", origin="needed")


def washed(job: TrainingJob, material: Material) -> list[Phase]:
    return [Phase(name="wash", samples=material.chat, config=job.chat_sft)]
