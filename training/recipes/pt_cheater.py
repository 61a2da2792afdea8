"""PT-cheater: base -> continued pre-training on a corpus that the exam leaked into -> chat SFT.

The loss is on all tokens: the exam is learned as text, as from a crawled page (KIEval, arXiv 2402.15043, section 4.2).
"""

from __future__ import annotations

from evaluation.formats import leak_text
from training.config import TrainingJob
from training.recipes import Material, leak_then_chat
from training.samples import Phase, Text


def pt_cheater(job: TrainingJob, material: Material) -> list[Phase]:
    return leak_then_chat(job, pretraining(job, material), material)


def pretraining(job: TrainingJob, material: Material) -> Phase:
    """The leaking phase."""
    return Phase(
        name="leak",
        samples=[Text(leak_text(item, job.leak_format)) for item in material.leaked],
        config=job.leak,
        repeats=job.repeats,
        filler=material.corpus,
        dose=job.dose,
        order=job.order,
        seed=job.seed,
    )
