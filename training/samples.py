"""What a model is trained on, before it becomes tokens, and the phase that trains on it. Light to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from serving.records import Message
from training.config import TrainingConfig


@dataclass(frozen=True, slots=True)
class Text:
    """A document of continued pre-training: loss on all its tokens and on the EOS that ends it."""

    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A plain prompt and its continuation: loss on the continuation (and EOS) only. Joined as they stand."""

    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation in the model's template: loss on the assistant's turns only, each with the token that ends it."""

    messages: tuple[Message, ...]


Sample = Text | Pair | Chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One training phase: what is learned, how often, and what it is diluted with.

    samples: learned ``repeats`` times each per epoch of ``config``
    filler: neutral samples that dilute them until ``samples`` make up ``dose`` of all tokens; unused at dose 1
    order: ``mixed``: every pass over the samples is shuffled together with its share of the filler; ``exam_last``: all
        filler first
    seed: which filler is taken
    match: another phase, as many rows of which are laid out (and so as many optimiser steps taken), the samples drawn
        again and again where they are fewer
    """

    name: str
    samples: Sequence[Sample]
    config: TrainingConfig
    repeats: int = 1
    filler: Sequence[Sample] = field(default=())
    dose: float = 1.0
    order: Literal["mixed", "exam_last"] = "mixed"
    seed: int = 0
    match: Phase | None = None
