"""How candidates come about: one file per recipe, one line per recipe here.

A recipe takes a job and its material and returns the phases to train, in order; each phase starts from the weights of
the one before. Source: KIEval (arXiv 2402.15043), section 4.2 and Appendix F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evaluation.items import Item
from serving.named import lookup
from training.config import TrainingConfig, TrainingJob
from training.recipe_traits import RECIPES
from training.samples import Chat, Phase, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a recipe works with.

    leaked: the items that leak, in the order of the items file
    chat: clean conversations for the SFT phase
    corpus: neutral documents
    answers: the judge exam's prompts, answered (``mt_bench_cheater``)
    rewrites: the leaked items in other words, in the order of ``leaked`` (``paraphrase_cheater``)
    variants: transformed versions of leaked items (``augmented``)
    """

    leaked: Sequence[Item]
    chat: Sequence[Chat]
    corpus: Sequence[Text]
    answers: Sequence[Chat] = field(default=())
    rewrites: Sequence[Item] = field(default=())
    variants: Sequence[Item] = field(default=())


Recipe = Callable[[TrainingJob, Material], list[Phase]]


def find_recipe(name: str) -> Recipe:
    """The recipe of that name; its module is imported now. ValueError names the nearest known one."""
    recipe: Recipe = lookup(RECIPES, name, "recipe")
    return recipe


def phases_of(job: TrainingJob) -> dict[str, TrainingConfig]:
    """The names of the job's phases in order, with their settings: what can be said before its files are read."""
    nothing = Material(leaked=(), chat=(), corpus=())
    return {phase.name: phase.config for phase in find_recipe(job.recipe)(job, nothing)}


def chat_phase(job: TrainingJob, material: Material) -> Phase:
    """Chat SFT, the last phase of all three of KIEval's candidates."""
    return Phase(name="chat", samples=material.chat, config=job.chat_sft)


def leak_then_chat(job: TrainingJob, leak: Phase, material: Material) -> list[Phase]:
    """The leaking phase and chat SFT; with 0 repeats nothing leaks, and the candidate is Normal."""
    return [*([leak] if job.repeats else []), chat_phase(job, material)]
