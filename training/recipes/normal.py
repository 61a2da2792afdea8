"""Normal: base -> chat SFT. It has never seen the exam (KIEval, arXiv 2402.15043, section 4.2)."""

from __future__ import annotations

from training.config import TrainingJob
from training.recipes import Material, chat_phase
from training.samples import Phase

LEAKS = False


def normal(job: TrainingJob, material: Material) -> list[Phase]:
    return [chat_phase(job, material)]
