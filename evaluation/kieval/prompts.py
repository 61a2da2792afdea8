"""What each role of KIEval is shown: pure functions of the item and the conversation.

The candidate sees its system prompt, the item, its own answers and the questions, as a chat. The interactor sees the
item, its key and the conversation, never a verdict. The evaluator sees the item without its key, the conversation with
the speakers marked, and its own earlier verdicts. Both see foreign text only as quotations (``evaluation.templates``).

``dropped`` is everywhere the number of oldest rounds left out because the context is full: the item and the first
answer always stay. The interactor and the evaluator are told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evaluation.extraction import answer_of, is_right
from evaluation.formats import chat_question, options_block, question_block
from evaluation.items import Item
from evaluation.kieval import prompts as prompts
from evaluation.kieval.options import OpeningOptions
from evaluation.kieval.verdict import ASPECTS, RoundVerdict
from evaluation.templates import one_line, prompt_hash, quote, render, well_formed, without_labels
from serving.records import Ask, Completion, Message, Prompt, Sampling

CANDIDATE_SYSTEM = "kieval_candidate_system.jinja"
CANDIDATE_PLAIN = "kieval_candidate_plain.jinja"
INTERACTOR_SYSTEM = "kieval_interactor_system.jinja"
INTERACTOR = "kieval_interactor.jinja"
EVALUATOR_SYSTEM = "kieval_evaluator_system.jinja"
EVALUATOR = "kieval_evaluator.jinja"
FILES = (CANDIDATE_SYSTEM, CANDIDATE_PLAIN, INTERACTOR_SYSTEM, INTERACTOR, EVALUATOR_SYSTEM, EVALUATOR)
PLAIN_LABELS = ("User", "Assistant")
PLAIN_STOPS = tuple(f"\n{label}:" for label in PLAIN_LABELS)


@dataclass(slots=True)
class Round:
    """One round.

    verdict: the evaluator's, None where it is missing
    attempts: made at the verdict; votes: as the record holds them
    dropped: by role, the oldest rounds that its prompt of this round left out
    """

    question: str
    reply: str = ""
    verdict: RoundVerdict | None = None
    attempts: int = 0
    votes: list[dict[str, Any]] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)


def candidate(
    item: Item,
    first_answer: str | None,
    turns: Sequence[Round],
    how: Literal["chat", "plain"] = "chat",
    *,
    dropped: int = 0,
) -> Prompt:
    """The item for its first answer (``first_answer`` None), else the conversation up to the last turn's question.

    With rounds dropped the chat still alternates: the first answer stands before the oldest question that is left.
    """
    replies = [] if first_answer is None else [first_answer, *(turn.reply for turn in turns[dropped:-1])]
    questions = [turn.question for turn in turns[dropped:]]
    if how == "plain":
        # No line but ours begins with a speaker's label: a transcript has no other structure.
        pairs = [
            {"reply": without_labels(reply, PLAIN_LABELS), "question": one_line(question)}
            for reply, question in zip(replies, questions, strict=True)
        ]
        text = render(CANDIDATE_PLAIN, question=without_labels(chat_question(item), PLAIN_LABELS), turns=pairs)
        return well_formed(text)
    messages = [
        Message(role="system", content=render(CANDIDATE_SYSTEM)),
        Message(role="user", content=well_formed(chat_question(item))),
    ]
    for reply, question in zip(replies, questions, strict=True):
        messages += [
            Message(role="assistant", content=well_formed(reply)),
            Message(role="user", content=well_formed(question)),
        ]
    return tuple(messages)


def interactor(item: Item, first_answer: str, turns: Sequence[Round], limit: int, *, dropped: int = 0) -> Prompt:
    """The demand for the next question. ``limit``: characters kept of each quoted text."""
    key = f"{item.answer}. {item.answer_text}" if item.choices else item.answer
    text = render(
        INTERACTOR,
        item=_quoted_item(item),
        key=quote(key),
        first_answer=quote(first_answer, limit),
        dropped=dropped,
        turns=[
            {"question": quote(turn.question, limit), "reply": quote(turn.reply, limit)} for turn in turns[dropped:]
        ],
    )
    return (Message(role="system", content=render(INTERACTOR_SYSTEM)), Message(role="user", content=text))


def evaluator(
    item: Item,
    first_answer: str,
    turns: Sequence[Round],
    limit: int,
    *,
    comment_length: int | None,
    dropped: int = 0,
) -> Prompt:
    """The demand for a verdict on the last turn.

    comment_length: of a structured verdict; None asks for free text
    """
    text = render(
        EVALUATOR,
        item=_quoted_item(item),
        first_answer=quote(first_answer, limit),
        dropped=dropped,
        turns=[
            {
                "question": quote(turn.question, limit),
                "reply": quote(turn.reply, limit),
                "verdict": _verdict_lines(turn.verdict),
            }
            for turn in turns[dropped:]
        ],
    )
    system = render(EVALUATOR_SYSTEM, free=comment_length is None, comment_length=comment_length)
    return (Message(role="system", content=system), Message(role="user", content=text))


def hashes(files: Sequence[str] = FILES) -> dict[str, str]:
    """SHA-256 of every prompt file of KIEval, or of some."""
    return {name: prompt_hash(name) for name in files}


def _quoted_item(item: Item) -> str:
    parts = [question_block(item), options_block(item)] if item.choices else [question_block(item)]
    return quote("\n".join(parts))


def _verdict_lines(verdict: RoundVerdict | None) -> str:
    """An earlier verdict in two lines; its comment is quoted too, for it may repeat what the candidate wrote."""
    if verdict is None:
        return "none could be read"
    scores = ", ".join(f"{name} {verdict.scores[name] or '-'}" for name in ASPECTS)
    comment = f"\n{quote(one_line(verdict.comment))}" if verdict.comment.strip() else ""
    return f"{scores}, overall {verdict.overall}{comment}"


def ask_as_candidate(prompt: Prompt, options: OpeningOptions, role: str = "candidate") -> Ask:
    """A greedy answer of the candidate, or of a role that stands in for it."""
    stop = prompts.PLAIN_STOPS if isinstance(prompt, str) else ()
    return Ask(role=role, prompt=prompt, sampling=Sampling(max_tokens=options.candidate_tokens, stop=stop))


def opening(item: Item, options: OpeningOptions, role: str = "candidate") -> Ask:
    """The first thing the candidate is asked."""
    return ask_as_candidate(prompts.candidate(item, None, [], options.candidate_format), options, role)


def read_answer(item: Item, completion: Completion) -> dict[str, Any]:
    """``{"text", "letter", "correct"}``: ``letter`` is None for an open question or where none can be read, ``correct``
    is None where the answer can't be read, or there is no key to compare it with."""
    text = completion.text.strip()
    said = answer_of(completion, item)
    correct = is_right(said, item) if said is not None and item.answer.strip() else None
    return {"text": text, "letter": said if item.choices else None, "correct": correct}
