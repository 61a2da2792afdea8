"""Questions put to a candidate turn by turn, and its replies: what MT-Bench, pairwise comparison and IDGen judge."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaluation.asking.until_read import sampling
from evaluation.asking.verdict import JudgeOptions
from evaluation.formats import chat_answer, chat_question
from evaluation.items import Item
from evaluation.templates import render, well_formed, without_labels
from serving.records import Ask, Completion, Message, Prompt, Yielded

CANDIDATE_PLAIN = "mt_bench_candidate_plain.jinja"


PLAIN_LABELS = ("User", "Assistant")


PLAIN_STOPS = tuple(f"\n{label}:" for label in PLAIN_LABELS)


GUIDED = ("math", "reasoning", "coding")
"""The categories whose judge sees a reference answer (option ``reference: auto``)."""


TEMPERATURES = {
    "writing": 0.7,
    "roleplay": 0.7,
    "extraction": 0.0,
    "math": 0.0,
    "coding": 0.0,
    "reasoning": 0.0,
    "stem": 0.1,
    "humanities": 0.1,
}
"""The candidate's temperature by category, as FastChat samples MT-Bench; ``OTHER_TEMPERATURE`` for any other."""


OTHER_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn: what the user said, and the candidate's reply.

    finish_reason: of the reply; ``context``: the conversation no longer fitted, ``unasked``: an earlier turn did not
    reference: a reference answer, "" if there is none or it is not to be shown
    """

    question: str
    reply: str = ""
    finish_reason: Literal["stop", "length", "context", "unasked"] = "unasked"
    reference: str = ""

    @property
    def answered(self) -> bool:
        return self.finish_reason in ("stop", "length")


def converse(item: Item, options: JudgeOptions, seed: int) -> Generator[Yielded, Any, list[Turn]]:
    """The candidate's conversation: one Turn per turn of the user. It ends where the context is full."""
    questions = (chat_question(item), *item.followups)
    references = shown_references(item, options.reference)
    temperature = TEMPERATURES.get(item.subject, OTHER_TEMPERATURE) if options.temperatures == "category" else 0.0
    turns: list[Turn] = []
    for number, (question, reference) in enumerate(zip(questions, references, strict=True), start=1):
        if turns and not turns[-1].answered:
            turns.append(Turn(question=question, reference=reference))
            continue
        prompt = _conversation(turns, question, options.candidate_format)
        completion: Completion = yield Ask(
            role="candidate",
            prompt=prompt,
            sampling=sampling(
                options.candidate_tokens,
                temperature,
                # the same in every protocol, so that one candidate has one conversation
                *(seed, item.id, f"conversation/{number}", 0),
                stop=PLAIN_STOPS if isinstance(prompt, str) else (),
            ),
        )
        turns.append(
            Turn(
                question=question,
                reply=completion.text.strip() if completion.finish_reason != "context" else "",
                finish_reason=completion.finish_reason,
                reference=reference,
            )
        )
    return turns


def shown_references(item: Item, how: Literal["auto", "never", "always"]) -> list[str]:
    """The reference answer of each turn that the evaluator is shown; "" for none.

    An item without ``references`` has its key for the first turn's. ``auto`` shows a published reference in the
    categories of ``GUIDED`` only, a key always: an exam question has one right answer, whatever it is about.
    """
    published = any(text.strip() for text in item.references)
    key = chat_answer(item) if item.choices else item.answer
    texts = item.references if published else (key,)
    number = 1 + len(item.followups)
    if how == "never" or (how == "auto" and published and item.subject not in GUIDED):
        return [""] * number
    return [text if text.strip() else "" for text in [*texts, *[""] * number][:number]]


def reply_counts(turns: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Of the replies in records: how many are empty, and how many were cut by max_tokens."""
    answered = [turn for turn in turns if turn["finish_reason"] in ("stop", "length")]
    return {
        "empty_replies": sum(not turn["reply"] for turn in answered),
        "cut_replies": sum(turn["finish_reason"] == "length" for turn in answered),
    }


def _conversation(turns: Sequence[Turn], question: str, how: Literal["chat", "plain"]) -> Prompt:
    if how == "plain":
        # No line but ours begins with a speaker's label: a transcript has no other structure.
        texts = [(turn.question, turn.reply) for turn in (*turns, Turn(question=question))]
        shown = [
            {"question": without_labels(asked, PLAIN_LABELS), "reply": without_labels(said, PLAIN_LABELS)}
            for asked, said in texts
        ]
        return well_formed(render(CANDIDATE_PLAIN, turns=shown))
    messages: list[Message] = []
    for turn in turns:
        messages += [Message(role="user", content=turn.question), Message(role="assistant", content=turn.reply)]
    return (*messages, Message(role="user", content=question))
