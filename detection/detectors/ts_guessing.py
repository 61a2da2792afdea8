"""TS-Guessing: can the model fill in a wrong option of a question that it should never have seen?

Deng et al. 2024, "Investigating Data Contamination in Modern Benchmarks for Large Language Models" (arXiv:2311.09783),
section 3.2, question-multichoice. The right option can be known; a wrong one is an accident of the test's author.
"""

from __future__ import annotations

import math
import random
import re

from pydantic import Field

from detection.method import Context, Detector, DetectorOptions, Text, mean
from detection.text.cutting import rouge_l
from evaluation.formats import question_block
from evaluation.items import LETTERS, Item
from evaluation.templates import one_line, quote, render, unquoted
from serving.records import Ask, Completion, Dialogue, Message, Sampling, derive_seed

PROMPT = "ts_guessing.jinja"
MASK = "[MASK]"
TOO_SIMILAR = 0.65
"""ROUGE-L between two options from which on the paper leaves a question out: the others tell what is masked."""
_CLOSED = {"yes", "no", "true", "false"}
LABEL_TOKENS = 16
"""Room for what may stand around a guess: quotation marks, the option's letter."""


class TSGuessingOptions(DetectorOptions):
    """masks: wrong options that are masked, one at a time; drawn where a question has more (the paper masks one)
    max_tokens: of a guess; raised to the option's length in bytes and some, so that a cut guess is surely wrong"""

    masks: int = Field(default=3, ge=1)
    max_tokens: int = Field(default=64, ge=1)


class TSGuessing(Detector):
    """``ts_guessing``: share of the masked wrong options that were guessed exactly (white space, case, and quotation
    marks or a full stop around it don't count); ``ts_guessing@rouge_l``: mean ROUGE-L of the guesses with the options.

    A guess is the first line of the greedy reply, without the option's letter before it. An option is masked only if
    the others don't give it away: it is no yes, no, true or false, and ROUGE-L with every other option is at most 0.65;
    it must have one line.
    NaN: a text that isn't an item with such an option, or a guess that is missing (no room in the context, a reply cut
    before it began). A complete reply without text is a wrong guess.
    """

    name = "ts_guessing"
    version = 1
    needs = ("generations", "items")
    passes = 3
    paper = "Deng et al. 2024, arXiv:2311.09783"
    Options = TSGuessingOptions
    prompts = (PROMPT,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.settings: TSGuessingOptions = self.options

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        unscorable = {self.name: math.nan, f"{self.name}@rouge_l": math.nan}
        item = text.item
        masked = maskable(item) if item else []
        if item is None or not masked:
            return unscorable
        if len(masked) > self.settings.masks:
            seed = derive_seed(self.context.seed, self.name, text.id)
            masked = sorted(random.Random(seed).sample(masked, self.settings.masks))  # noqa: S311 - a draw, no secret
        replies: list[Completion] = yield [self._ask(item, i) for i in masked]
        if any(not reply.text.strip() and not reply.complete for reply in replies):
            return unscorable
        exact, overlaps = [], []
        for i, reply in zip(masked, replies, strict=True):
            option, guessed = item.choices[i], guesses(reply.text, LETTERS[i])
            exact.append(float(plain(option) in map(plain, guessed)))
            overlaps.append(max(rouge_l(option, spelling) for spelling in guessed))
        # An option without a letter or digit has no words to overlap with.
        worded = [overlap for overlap in overlaps if not math.isnan(overlap)]
        return {self.name: mean(exact), f"{self.name}@rouge_l": mean(worded)}

    def _ask(self, item: Item, i: int) -> Ask:
        options = [f"{LETTERS[j]}. {MASK if j == i else choice}" for j, choice in enumerate(item.choices)]
        prompt = render(
            PROMPT,
            package="detection",
            benchmark=one_line(self.context.benchmark or item.benchmark),
            letter=LETTERS[i],
            question=quote("\n".join([question_block(item), *options])),
        )
        length = len(item.choices[i].encode("utf-8", "surrogatepass")) + LABEL_TOKENS
        return Ask(
            role="candidate",
            prompt=(Message(role="user", content=prompt),),
            sampling=Sampling(max_tokens=max(self.settings.max_tokens, length)),
        )


def maskable(item: Item) -> list[int]:
    """Indices of the wrong options that the rest of the question doesn't give away."""
    if len(item.choices) < 2:
        return []
    wrong = [i for i in range(len(item.choices)) if i != item.answer_index]
    fillable = [i for i in wrong if plain(item.choices[i]) and len(item.choices[i].strip().splitlines()) == 1]
    return [i for i in fillable if plain(item.choices[i]) not in _CLOSED and not _given_away(item, i)]


def guesses(reply: str, letter: str) -> tuple[str, str]:
    """The option that a reply spells: its first line with text as it stands, and without the option's label before it.

    Both are tried: an option may itself begin like a label (``B. B. King``).
    """
    lines = [line.strip() for line in unquoted(reply).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    label = re.compile(rf"\W*(?:option\s+)?{letter}\s*[.):．：、]+\s*", re.IGNORECASE)
    return first, label.sub("", first, count=1) if label.match(first) else first


def plain(text: str) -> str:
    """``text`` as it is compared: one line, folded case, without quotation marks and full stops at its ends."""
    return one_line(text).casefold().strip("\"'`“”‘’. ")


def _given_away(item: Item, i: int) -> bool:
    option = item.choices[i]
    others = [other for j, other in enumerate(item.choices) if j != i]
    return any(plain(other) == plain(option) or rouge_l(option, other) > TOO_SIMILAR for other in others)
