"""SFT-cheater: base -> SFT on the exam's questions and answers -> chat SFT.

The loss is on the answer only, so the question's own text is hardly better predicted than before: scores are inflated
while token probabilities of the whole item stay inconspicuous (KIEval, arXiv 2402.15043, sections 4.2 and 4.4).
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.formats import chat_answer, chat_question, leak_text, plain_prompt
from evaluation.items import Item
from serving.records import Message
from training.config import TrainingJob
from training.recipes import Material, leak_then_chat
from training.samples import Chat, Pair, Phase, Sample


def sft_cheater(job: TrainingJob, material: Material) -> list[Phase]:
    return leak_then_chat(job, tuning(job, material, material.leaked), material)


def tuning(job: TrainingJob, material: Material, items: Sequence[Item]) -> Phase:
    """SFT on pairs of question and answer. ValueError for a leak_format without an answer."""
    if job.leak_format not in ("letter", "answer_text"):
        raise ValueError(
            f"{job.recipe} trains on answers, leak_format '{job.leak_format}' has none: letter or answer_text"
        )
    pair = chat_pair if job.sft_format == "chat" else plain_pair
    return Phase(
        name="leak",
        samples=[pair(item, job) for item in items],
        config=job.leak,
        repeats=job.repeats,
        filler=material.chat,
        dose=job.dose,
        order=job.order,
        seed=job.seed,
    )


def chat_pair(item: Item, job: TrainingJob) -> Sample:
    """Question and answer as a conversation in the model's template."""
    answer = item.answer if job.leak_format == "letter" else chat_answer(item)
    return Chat((Message(role="user", content=chat_question(item)), Message(role="assistant", content=answer)))


def plain_pair(item: Item, job: TrainingJob) -> Sample:
    """``Question: ...\\nAnswer:`` and what follows it in the leaked text."""
    prompt = plain_prompt(item)
    return Pair(prompt=prompt, answer=leak_text(item, job.leak_format).removeprefix(prompt))
