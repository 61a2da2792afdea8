"""What a set-level test is: a generator that asks a model about a whole set of texts and returns its figures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from detection.method import Method, Text
from serving.records import Dialogue

Figures = dict[str, Any]
"""JSON-ready. ``p_value``: one-sided, small means leakage, None where there is no test or it can't be computed (then
``reason`` says why); ``n``: texts that entered; anything else by its own name, documented by the test."""


class SetTest(Method):
    """A method that examines a whole set.

    reads: detectors whose scores of the texts it is made of; they must be chosen too
    """

    reads: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        """texts: the set in its canonical order; scores: per text what the detectors of the audit gave, by name."""
