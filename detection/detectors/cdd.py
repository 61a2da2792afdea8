"""CDD: answers that hardly differ from each other, however they are sampled, were learnt by heart.

Dong et al. 2024, "Generalization or Memorization: Data Contamination and Trustworthy Evaluation for Large Language
Models" (arXiv:2402.15938), equations 3 to 6: the peak of the distribution of edit distances at the greedy answer.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import Any

from pydantic import Field

from detection.method import Context, Detector, DetectorOptions, Text
from detection.text.cutting import halves, pieces
from evaluation.templates import well_formed
from serving.records import Ask, Completion, Dialogue, Sampling, derive_seed


class CDDOptions(DetectorOptions):
    """The paper's settings.

    samples: answers drawn
    temperature: of these
    length: tokens of an answer that count, the first ones; nothing beyond them is generated
    alpha: distance up to which two answers are the same, as a share of the longest answer's length
    """

    samples: int = Field(default=50, ge=1)
    temperature: float = Field(default=0.8, ge=0.01, le=5.0)
    length: int = Field(default=100, ge=1)
    alpha: float = Field(default=0.05, ge=0.0, le=1.0)


class CDD(Detector):
    """Share of the sampled answers whose edit distance to the greedy one is at most alpha times the length of the
    longest of all these answers; in [0, 1].

    Lengths and distances are in tokens of the candidate's own tokenizer; of a scripted model, or none, in words with
    their punctuation. White space around an answer doesn't count.

    What is answered is the text's prompt, or, where it has none, the first half of its words. A complete greedy answer
    without text scores 0: nothing was recited, and every other empty answer would agree with it. NaN: a text without a
    prompt and of fewer than two words, a prompt that leaves no room in the context, a greedy answer cut while the model
    was still reasoning.
    """

    name = "cdd"
    version = 2
    needs = ("generations",)
    passes = 51
    paper = "Dong et al. 2024, arXiv:2402.15938"
    Options = CDDOptions

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.settings: CDDOptions = self.options

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        prompt = text.prompt or (halves(text.text) or ("",))[0]
        if not prompt.strip():
            return {self.name: math.nan}
        prompt = well_formed(prompt)
        answers: list[Completion] = yield self._asks(prompt, text.id)
        if any(answer.finish_reason == "context" for answer in answers):
            return {self.name: math.nan}
        if not answers[0].text.strip():
            return {self.name: 0.0 if answers[0].complete else math.nan}
        greedy, *sampled = [units[: self.settings.length] for units in self._units([answer.text for answer in answers])]
        return {self.name: peak(greedy, sampled, self.settings.alpha)}

    @functools.cached_property
    def _tokenizer(self) -> Any:
        """Loaded at the first text: a candidate that is still to be trained has no tokenizer before."""
        from serving.engines.common import load_tokenizer
        from serving.model.fingerprint import resolve_model

        model = self.context.model
        return None if model is None or model.engine == "scripted" else load_tokenizer(model, resolve_model(model))

    def _units(self, answers: Sequence[str]) -> list[Sequence[Hashable]]:
        stripped = [answer.strip() for answer in answers]
        if self._tokenizer is None:
            return [[piece.strip() for piece in pieces(answer)] for answer in stripped]
        encoded = self._tokenizer(stripped, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    def _asks(self, prompt: str, identity: str | int) -> list[Ask]:
        options = self.settings
        samplings = [Sampling(max_tokens=options.length)]
        for i in range(options.samples):
            seed = derive_seed(self.context.seed, self.name, identity, i)
            samplings.append(Sampling(max_tokens=options.length, temperature=options.temperature, seed=seed))
        return [Ask(role="candidate", prompt=prompt, sampling=sampling) for sampling in samplings]


def peak(greedy: Sequence[Hashable], sampled: Sequence[Sequence[Hashable]], alpha: float) -> float:
    """Share of ``sampled`` within ``alpha`` times the longest length (the greedy answer's included) of ``greedy``."""
    longest = max(len(greedy), *(len(answer) for answer in sampled))
    within = alpha * longest + 1e-9  # 0.07 * 100 is more than 7 in floating point, 0.29 * 100 less than 29
    return sum(edit_distance(greedy, answer) <= within for answer in sampled) / len(sampled)


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The least number of insertions, deletions and replacements of single tokens that turn one into the other."""
    if not first:
        return len(second)
    rows: dict[Hashable, int] = {}
    for i, token in enumerate(first):
        rows[token] = rows.get(token, 0) | 1 << i
    everywhere = (1 << len(first)) - 1
    last = 1 << (len(first) - 1)
    # Bit i: the table's value in row i+1 exceeds (up), or falls below (down), that of row i.
    up, down, distance = everywhere, 0, len(first)
    for token in second:
        equal = rows.get(token, 0)
        vertical = equal | down
        diagonal = (((equal & up) + up) ^ up) | equal
        right = down | ~(diagonal | up)
        left = up & diagonal
        if right & last:
            distance += 1
        elif left & last:
            distance -= 1
        right = right << 1 | 1
        up = (left << 1 | ~(vertical | right)) & everywhere
        down = right & vertical & everywhere
    return distance
