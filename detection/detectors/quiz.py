"""Data Contamination Quiz: can the model tell a text from copies that differ in a few words only?

Golchin & Surdeanu 2023, "Data Contamination Quiz: A Tool to Detect and Estimate Contamination in Large Language Models"
(arXiv:2311.06233): four options of which one is verbatim, and a fifth, none of them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from detection.method import Detector, Text
from detection.text.rewrites import rewrites
from evaluation.templates import one_line, quote, render
from serving.records import Ask, Completion, Dialogue, Message, Sampling, derive_seed

PROMPT = "quiz.jinja"
POSITIONS = "ABCD"
NONE = "E"
_CHOICES = [*POSITIONS, NONE]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": _CHOICES}},
    "required": ["choice"],
    "additionalProperties": False,
}
# Each token of the answer spells at least one character of it; one more for the end.
MAX_TOKENS = len(json.dumps({"choice": "A"})) + 1


class Quiz(Detector):
    """How often the verbatim text is picked, minus how often its place is picked anyway; in [-1, 1].

    The text stands once in each of the four positions, beside the same three rewrites. The control (the paper's quiz
    for positional bias) puts a fourth rewrite where the text stood, and a model that sees nothing but the letter, or
    always says none, picks it just as often: score = mean over positions of [picked text] - [picked fourth rewrite].
    The paper finds a model's unpopular positions first and asks there only; here each position is its own control, so a
    score of one text needs no other texts. Rewrites are ours (``detection.rewrites``), weaker than the paper's.

    NaN: fewer than four rewrites, or an answer that is missing, cut or none of the five letters: nothing is guessed.
    """

    name = "quiz"
    version = 1
    needs = ("generations",)
    passes = 2 * len(POSITIONS)
    paper = "Golchin & Surdeanu 2023, arXiv:2311.06233"
    prompts = (PROMPT,)

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        seed = derive_seed(self.context.seed, self.name, text.id)
        copies = rewrites(text.text, len(POSITIONS), seed=seed)
        if len(copies) < len(POSITIONS):
            return {self.name: math.nan}
        *beside, control = copies
        asks = [
            self._ask(text, [*beside[:place], shown, *beside[place:]])
            for shown in (text.text, control)
            for place in range(len(POSITIONS))
        ]
        replies: list[Completion] = yield asks
        picks = [choice(reply) for reply in replies]
        if None in picks:
            return {self.name: math.nan}
        hits = [pick == place for pick, place in zip(picks, POSITIONS * 2, strict=True)]
        found, anyway = hits[: len(POSITIONS)], hits[len(POSITIONS) :]
        return {self.name: (sum(found) - sum(anyway)) / len(POSITIONS)}

    def _ask(self, text: Text, options: list[str]) -> Ask:
        benchmark = self.context.benchmark or (text.item.benchmark if text.item else "")
        prompt = render(
            PROMPT,
            package="detection",
            benchmark=one_line(benchmark),
            split=one_line(text.item.split) if text.item else "",
            options=[{"letter": a, "text": quote(b)} for a, b in zip(POSITIONS, options, strict=True)],
        )
        return Ask(
            role="candidate",
            prompt=(Message(role="user", content=prompt),),
            sampling=Sampling(max_tokens=MAX_TOKENS),
            schema=SCHEMA,
        )


def choice(reply: Completion) -> str | None:
    """The letter of an answer; None where it was cut or isn't of the schema's form."""
    try:
        value = json.loads(reply.text)
    except (ValueError, RecursionError):
        return None
    picked = value.get("choice") if isinstance(value, dict) and len(value) == 1 else None
    return picked if isinstance(picked, str) and picked in _CHOICES else None
