"""Lowercase: how much worse the model finds the same text without its capitals.

Carlini et al. 2021, "Extracting Training Data from Large Language Models" (arXiv:2012.07805), section 5.2: the ratio of
the log-perplexities of the lower-cased text and of the text as it stands. Capitals are remembered with the text; to one
who never saw it they matter less.
"""

from __future__ import annotations

from detection.method import Detector, Text, mean, parts, ratio, table
from serving.records import Dialogue


class Lowercase(Detector):
    """Mean l_t of the lower-cased text over mean l_t of the text, each over its own tokens; at least 0, near 1.

    1 for a text without capitals. Unscorable where every token of the text is certain.
    """

    name = "lowercase"
    version = 1
    needs = ("log_probabilities",)
    passes = 2
    paper = "Carlini et al. 2021, arXiv:2012.07805"

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        prompt, answer = text.prompt.lower(), text.answer.lower()
        lowered = Text(id=text.id, text=prompt + answer, prompt=prompt)
        shared = lowered.text == text.text and self.context.full_vocabulary
        plain, low = yield [table(text, self.context.full_vocabulary), table(lowered, shared)]
        return {
            self.name + part.suffix: ratio(mean(other.logprobs), mean(part.logprobs))
            for part, other in zip(parts(text, plain), parts(lowered, low), strict=True)
        }
