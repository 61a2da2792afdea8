"""From a seed to drafts: category, instruction gradient, critic, response gradient."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from evaluation.asking.form import Answer, Fields, Form
from evaluation.formats import options_block, question_block
from evaluation.idgen.asking import Desk, prompt
from evaluation.idgen.options import MATHEMATICS, IDGenOptions
from evaluation.idgen.strategies import Drawn
from evaluation.items import Item
from evaluation.templates import one_line, quote, unquoted, well_formed
from serving.records import Completion, Message, Yielded

GENERATOR = "generator"
CATEGORY = "idgen_category.jinja"
INSTRUCTION = "idgen_instruction.jinja"
INSTRUCTION_MATH = "idgen_instruction_math.jinja"
CRITIC = "idgen_critic.jinja"
REWRITE = "idgen_rewrite.jinja"
RESPONSE = "idgen_response_question.jinja"
PROMPTS = (CATEGORY, INSTRUCTION, INSTRUCTION_MATH, CRITIC, REWRITE, RESPONSE)

NO_ROOM = "the prompt did not fit"

_MATH_SUBJECTS = ("math", "algebra", "geometry", "calculus", "arithmetic")


@dataclass(slots=True, kw_only=True)
class Draft:
    """A question on its way through the steps.

    source: the gradient that wrote it; passed: the steps it has passed; step, reason: where and why it was rejected
    """

    source: str
    strategy: str
    demand: str
    question: str = ""
    critic: Answer | None = None
    passed: list[str] = field(default_factory=list)
    step: str = ""
    reason: str = ""
    checks: list[dict[str, Any]] = field(default_factory=list)
    reference: dict[str, Any] | None = None

    def reject(self, step: str, reason: str) -> None:
        self.step, self.reason = step, reason

    @property
    def alive(self) -> bool:
        return not self.step

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def seed_text(item: Item) -> str:
    """The seed as the generator sees it: its question, with passage and options where it has them; never its key."""
    text = question_block(item).replace("Question: ", "", 1) if not item.context else question_block(item)
    return f"{text}\n{options_block(item)}" if item.choices else text


def category(item: Item, options: IDGenOptions, desk: Desk) -> Generator[Yielded, Any, tuple[bool, str]]:
    """(is it mathematical, its category). An unreadable answer leaves the seed general, with its subject."""
    if options.classes == "math":
        return True, MATHEMATICS
    numeric = item.form == "number" or any(name in item.subject.lower() for name in _MATH_SUBJECTS)
    if options.classes == "auto" and numeric:
        return True, MATHEMATICS
    ask_math = options.classes == "classify"
    names = (*options.categories, *([MATHEMATICS] if ask_math and MATHEMATICS not in options.categories else []))
    if len(names) < 2 and not (ask_math and names):
        return False, names[0] if names else item.subject
    if names == (MATHEMATICS,):
        names = (MATHEMATICS, "other")
    asked = prompt(CATEGORY, question=quote(seed_text(item), options.quote_limit), categories=names)
    (answer,) = yield from desk.decide([(GENERATOR, asked)], "category", Fields({"category": names}))
    found = answer["category"] if answer else item.subject
    return ask_math and found == MATHEMATICS, found


def instruction(
    item: Item, drawn: Drawn, number: int, *, math: bool, options: IDGenOptions, desk: Desk
) -> Generator[Yielded, Any, Draft]:
    """The instruction gradient: the seed, rewritten by one strategy."""
    draft = Draft(source="instruction", strategy=drawn.name, demand=drawn.demand)
    text = seed_text(item)
    asked = prompt(
        INSTRUCTION_MATH if math else INSTRUCTION, question=quote(text, options.quote_limit), demand=drawn.demand
    )
    yield from _question(draft, asked, f"instruction/{number}", text, options, desk)
    return draft


def critic(draft: Draft, number: int, options: IDGenOptions, desk: Desk) -> Generator[Yielded, Any, None]:
    """The critic's prediction, and one rewrite by its suggestions. What the critic leaves unsaid changes nothing."""
    levels = (0, 1, 2, 3)
    fields = Fields({"suggestions": options.comment_length, "difficulty": levels, "discrimination": levels})
    shown = quote(draft.question, options.quote_limit)
    asked = prompt(CRITIC, question=shown, comment_length=options.comment_length)
    (draft.critic,) = yield from desk.decide([("critic", asked)], f"critic/{number}", fields)
    if draft.critic and draft.critic["suggestions"].strip():
        yield from rewrite(draft, draft.critic["suggestions"], options, desk)


def rewrite(draft: Draft, suggestions: str, options: IDGenOptions, desk: Desk) -> Generator[Yielded, Any, bool]:
    """The question, rewritten by the generator; where that fails it stays as it was. Whether it was."""
    asked = prompt(REWRITE, question=quote(draft.question, options.quote_limit), suggestions=quote(suggestions))
    (completion,) = yield from desk.write([(GENERATOR, asked)], options.question_tokens)
    question = _cleaned(completion)
    if _fault(completion, question, ""):
        return False
    draft.question = question
    return True


def response(
    draft: Draft, field_of: str, number: int, options: IDGenOptions, desk: Desk
) -> Generator[Yielded, Any, Draft]:
    """The response gradient: a rich answer to the question; the question is dropped; a new one, from that text."""
    grown = Draft(source="response", strategy=draft.strategy, demand=draft.demand, critic=draft.critic)
    # with both kept, what became of the instruction gradient's question is told by its own draft
    grown.passed = [] if options.keep == "both" else list(draft.passed)
    ask = (Message(role="user", content=draft.question),)
    (completion,) = yield from desk.write([(GENERATOR, ask)], options.answer_tokens)
    text = completion.text.strip()
    if completion.finish_reason == "context" or not text:
        grown.reject("response", "no text to start from")
        return grown
    asked = prompt(RESPONSE, category=one_line(field_of), text=quote(text, options.quote_limit))
    yield from _question(grown, asked, f"response/{number}", draft.question, options, desk)
    return grown


def _question(
    draft: Draft, asked: Any, step: str, origin: str, options: IDGenOptions, desk: Desk
) -> Generator[Yielded, Any, None]:
    """A question by the generator: greedy, then sampled as long as it can't be used."""
    fault = ""

    def read(completion: Completion) -> str | None:
        nonlocal fault
        draft.question = _cleaned(completion)
        fault = _fault(completion, draft.question, origin)
        return None if fault else draft.question

    form = Form(read=read, max_tokens=options.question_tokens)
    (reading,) = yield from desk.read([(GENERATOR, asked)], [step], form)
    if reading.status == "given":
        draft.passed.append(draft.source)
    else:
        draft.reject(draft.source, NO_ROOM if reading.status == "context" else fault)


def _cleaned(completion: Completion) -> str:
    return well_formed(unquoted(completion.text))


def _fault(completion: Completion, question: str, origin: str) -> str:
    if completion.finish_reason == "context":
        return NO_ROOM
    if not question:
        return "empty"
    if completion.finish_reason == "length":
        return "cut by question_tokens"
    if one_line(question).casefold() == one_line(origin).casefold():
        return "the seed again"
    return ""
