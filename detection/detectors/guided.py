"""Guided instruction: does the name of the benchmark help a model to go on with an instance of it, word for word?

Golchin & Surdeanu 2024, "Time Travel in LLMs: Tracing Data Contamination in Large Language Models" (arXiv:2308.08493),
sections 3.1.1 and 3.2.1. The test over a set of texts is ``detection.sets.guided``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from detection.method import Context, Detector, DetectorOptions, Text
from detection.text.cutting import halves, rouge_l
from evaluation.templates import one_line, render, well_formed
from evaluation.text_metrics import words
from serving.records import Ask, Completion, Dialogue, Sampling

PROMPT = "guided.jinja"


class GuidedOptions(DetectorOptions):
    """max_tokens: of a continuation, as in the paper"""

    max_tokens: int = Field(default=500, ge=1)


class Guided(Detector):
    """ROUGE-L of the continuation under a prompt that names the benchmark (and its split) minus ROUGE-L under one that
    doesn't; in [-1, 1]. Both are greedy, and are weighed against the second half of the text.

    Prompts are plain texts that the model completes, so a model without a chat template is asked the same. The text is
    cut in the middle of its words, wherever its prompt ends: an answer of a few words would tell what the model knows,
    not what it has seen. A continuation counts up to the reference's number of words, for a model that doesn't stop
    would lose precision with every further word. The benchmark's name is the audit's, else the item's.
    NaN: no name, fewer than two words, a second half without a letter or digit, a prompt that leaves no room in the
    context. A continuation that was cut or is empty counts as it is.
    """

    name = "guided"
    version = 2
    needs = ("generations",)
    passes = 2
    paper = "Golchin & Surdeanu 2024, arXiv:2308.08493"
    Options = GuidedOptions
    prompts = (PROMPT,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.settings: GuidedOptions = self.options

    @classmethod
    def check(cls, texts: Sequence[Text], context: Context) -> None:
        super().check(texts, context)
        if not context.benchmark.strip() and not any(text.item for text in texts):
            raise ValueError(
                "guided needs the benchmark's name: give --benchmark-name NAME (detection.benchmark_name in an "
                "experiment)"
            )

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        benchmark = one_line(self.context.benchmark or (text.item.benchmark if text.item else ""))
        split = one_line(text.item.split) if text.item else ""
        cut = halves(text.text)
        if not benchmark or cut is None or not words(cut[1]):
            return {self.name: math.nan}
        beginning, rest = cut
        length = len(words(rest))
        # A token spells at least one byte, so this is room enough for a continuation to the letter.
        most = min(self.settings.max_tokens, len(rest.encode("utf-8", "surrogatepass")))
        asks = [
            Ask(
                role="candidate",
                prompt=well_formed(
                    render(PROMPT, package="detection", benchmark=name, split=split, beginning=beginning)
                ),
                sampling=Sampling(max_tokens=most),
            )
            for name in (benchmark, "")
        ]
        replies: list[Completion] = yield asks
        if any(reply.finish_reason == "context" for reply in replies):
            return {self.name: math.nan}
        guided, general = (rouge_l(rest, " ".join(words(reply.text)[:length])) for reply in replies)
        return {self.name: guided - general}
