"""The plain text formats of an exam item, written once: the exam asks in them, the cheaters train on them and the
detectors look for them, so a leak is measured in the very string that leaked.

Lines end with "\\n"; there is none at the end of a text.
"""

from __future__ import annotations

from typing import Literal

from evaluation.items import LETTERS, Form, Item

LeakFormat = Literal["question", "options", "letter", "answer_text"]
"""How much of an item leaks: the question only; with its options; with the answer letter; with the answer's text."""

# How a chat model is asked to end its reply to an open question, so that the answer can be told from the reasoning.
_ENDINGS: dict[Form, str] = {
    "number": "End with a line that holds #### and the number.",
    "option": "End with a line that holds Answer: and the label of the right option, such as (A).",
    "text": "",
}


def question_block(item: Item) -> str:
    """``Question: ...`` with a passage before it where the item has one; newlines inside are kept."""
    context = f"{item.context}\n" if item.context else ""
    return f"{context}Question: {item.question}"


def options_block(item: Item) -> str:
    """``A. first`` ... one option per line."""
    return "\n".join(f"{LETTERS[i]}. {choice}" for i, choice in enumerate(item.choices))


def plain_prompt(item: Item) -> str:
    """``Question: ...\\nA. ...\\n...\\nAnswer:``: the static exam's default format (letter mode)."""
    blocks = [question_block(item)]
    if item.choices:
        blocks.append(options_block(item))
    return "\n".join([*blocks, "Answer:"])


def cloze_prompt(item: Item) -> str:
    """``Question: ...\\nAnswer:`` without the options: each option text is scored as a continuation."""
    return f"{question_block(item)}\nAnswer:"


def letter_continuation(letter: str) -> str:
    """`` B``: what follows ``Answer:`` in letter mode."""
    return f" {letter}"


def leak_text(item: Item, how: LeakFormat = "answer_text") -> str:
    """The item as it stands in a leaked corpus (``as_trained``), e.g. ``Question: ...\\nA. ...\\nAnswer: B. text``."""
    if how == "question":
        return question_block(item)
    if how == "options":
        return f"{question_block(item)}\n{options_block(item)}"
    if how == "letter" or not item.choices:
        return f"{plain_prompt(item)} {item.answer}"
    return f"{plain_prompt(item)} {item.answer}. {item.answer_text}"


def neutral_text(item: Item) -> str:
    """``Question: ...\\nAnswer: ...`` with the answer's text: a format no recipe trains on."""
    return f"{cloze_prompt(item)} {item.answer_text}"


def chat_question(item: Item) -> str:
    """The item as a user's message: question, options, and the form of answer that is wanted.

    An open question that is answered in words is asked as it is.
    """
    if not item.choices:
        question = question_block(item).removeprefix("Question: ")
        return f"{question}\n{_ENDINGS[item.form]}" if _ENDINGS[item.form] else question
    letters = ", ".join(LETTERS[: len(item.choices) - 1]) + " or " + LETTERS[len(item.choices) - 1]
    return f"{question_block(item)}\n{options_block(item)}\nAnswer with {letters} and its text."


def step_by_step(item: Item) -> str:
    """``chat_question`` with the request to reason first (zero-shot chain of thought, Kojima et al. 2022, arXiv
    2205.11916), the answer on a line of its own at the end."""
    if not item.choices:
        return f"{chat_question(item)}\nThink step by step first."
    letters = ", ".join(LETTERS[: len(item.choices) - 1]) + " or " + LETTERS[len(item.choices) - 1]
    return (
        f"{question_block(item)}\n{options_block(item)}\nThink step by step first. "
        f"End with a line that holds Answer: and {letters}."
    )


def chat_answer(item: Item) -> str:
    """The right reply to ``chat_question``: ``B. text``, ``Answer: (B)``, a solution and ``#### 18``, or words."""
    if item.choices:
        return f"{item.answer}. {item.answer_text}"
    return f"Answer: {item.answer}" if item.form == "option" else plain_answer(item)


def plain_answer(item: Item) -> str:
    """What follows ``Answer:`` in an exemplar: the letter, the answer, or the worked solution and ``#### 18``."""
    if item.choices or item.form != "number":
        return item.answer
    return f"{item.reason}\n#### {item.answer}" if item.reason else f"#### {item.answer}"
