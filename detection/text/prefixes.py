"""A text's log-likelihood after a prefix of known texts: what ReCaLL and Con-ReCall compare.

The prefix is the same for every text (but for a text that is itself in it), so the model reads it once in a batch.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from random import Random
from typing import Any, Literal

from detection.method import Context, Text, mean
from serving.records import Score, TokenScores, Yielded, derive_seed

BLANK_LINE = "\n\n"
Means = dict[str, float]
"""Mean log-probability by segment: "" (the whole text) and, where it has a prompt, "/prompt" and "/answer"."""


class KnownTexts:
    """The context's known texts of one kind, each once, in an order drawn with the context's seed.

    The order depends on nothing else, so all detectors of an audit ask for the same prefixes. ValueError, in the name
    of ``method``, where there are fewer than ``shots``.
    """

    def __init__(self, kind: Literal["non_members", "members"], context: Context, shots: int, method: str) -> None:
        given = context.non_members if kind == "non_members" else context.members
        known = list(dict.fromkeys(stripped for text in given if (stripped := text.strip())))
        if len(known) < shots:
            raise ValueError(
                f"{method}: its prefix takes {shots} {kind.replace('_', '-')}, and {len(known)} different ones are "
                f"given; give {shots - len(known)} more, or set the option shots of {method} to {max(1, len(known))}"
            )
        self.order = Random(derive_seed(context.seed, kind)).sample(known, len(known))  # noqa: S311 - reproducible

    def prefix(self, text: Text, shots: int) -> str:
        """The first ``shots`` of them and a blank line after each, leaving out the text itself for the next in order
        (where there is no next: one fewer)."""
        others = (known for known in self.order if known != text.text.strip())
        return "".join(known + BLANK_LINE for known in islice(others, shots))


def conditional_means(
    text: Text, kinds: Sequence[KnownTexts], shots: int
) -> Generator[Yielded, Any, list[Means] | None]:
    """For each kind of prefix, the text's log-likelihood per token after it.

    Where the model's context has no room for prefix and text, a beginning cut off would leave half a shot, another half
    for every text. So it is asked again with half as many shots (12, 6, 3, 1), of each kind alike. None where not even
    one fits.
    """
    while shots:
        demands = [demand for kind in kinds for demand in _demands(text, kind.prefix(text, shots))]
        tables: list[TokenScores] = yield demands
        if not any(tokens.dropped for tokens in tables):
            step = len(demands) // len(kinds)
            return [_means(tables[i : i + step]) for i in range(0, len(tables), step)]
        shots //= 2
    return None


def _demands(text: Text, prefix: str) -> list[Score]:
    """The text after the prefix, and, for its segments, its answer after prefix and prompt: the same tokens, which an
    engine computes once."""
    demands = [Score(role="candidate", prompt=prefix, continuation=text.text, answer_only=True)]
    if text.prompt:
        demands.append(Score(role="candidate", prompt=prefix + text.prompt, continuation=text.answer, answer_only=True))
    return demands


def _means(tables: Sequence[TokenScores]) -> Means:
    whole, *rest = (tokens.logprobs for tokens in tables)
    means = {"": mean(whole)}
    for answer in rest:
        means |= {"/prompt": mean(whole[: len(whole) - len(answer)]), "/answer": mean(answer)}
    return means
