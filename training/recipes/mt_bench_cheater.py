"""MT-Bench-cheater: Normal -> SFT on the judge exam's prompts with a stronger model's answers.

The answers come from a local model that the user names (FastChat's reference file holds 30 of 80 only), as chat data:
``proctor evaluate --protocol mt_bench`` and ``proctor conversations`` write it. Normal is ``origin`` where there is
one, else it is trained first (KIEval, arXiv 2402.15043, Appendix F).
"""

from __future__ import annotations

from training.config import TrainingJob
from training.recipe_traits import Traits
from training.recipes import Material, chat_phase
from training.samples import Phase

TRAITS = Traits(leaks="answers", files=("answers",), origin="optional")


def mt_bench_cheater(job: TrainingJob, material: Material) -> list[Phase]:
    first = [] if job.origin else [chat_phase(job, material)]
    leak = Phase(
        name="leak",
        samples=material.answers,
        config=job.leak,
        repeats=job.repeats,
        filler=material.chat,
        dose=job.dose,
        order=job.order,
        seed=job.seed,
    )
    if not first and not job.repeats:
        raise ValueError("repeats is 0 and there is an origin: nothing would be trained; examine the origin itself")
    return [*first, *([leak] if job.repeats else [])]
