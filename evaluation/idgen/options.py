"""The settings of IDGen."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from evaluation.idgen import strategies
from evaluation.idgen.duplicates import THRESHOLD
from evaluation.protocol import ProtocolOptions

CATEGORIES = (
    "science",
    "history and society",
    "language and writing",
    "everyday life",
    "technology",
    "reasoning",
    "arts and culture",
    "business and law",
)
MATHEMATICS = "mathematics"


class IDGenOptions(ProtocolOptions):
    """What can be chosen.

    classes: which seeds are mathematical: ``auto`` (a number is the answer, or the subject says so), ``classify`` (the
        generator is asked), ``math`` or ``general`` (all of them)
    categories: of general seeds, told by the generator; empty: the seed's subject is its category
    per_seed: drafts per seed, each with a strategy of its own
    general_strategies, math_strategies: which are drawn (``evaluation.idgen.strategies``)
    critic: whether a critic predicts difficulty and discrimination and has the draft rewritten once
    response_gradient: whether a general draft is answered and a new question is written from the answer
    keep: ``last`` (the response gradient's question only) or ``both`` (the instruction gradient's, too)
    iterations: repairs of a mathematical draft before it is discarded
    both_reject: whose suggestion is followed where both checkers reject
    same_checkers: allow the two checkers to be one model (its second opinion is worth little)
    allow_generator: whether the generator may sit the exam it wrote (its row is then marked)
    references: whether reference answers are written; answerers: by how many models
    duplicates: ROUGE-L above which a question is dropped
    retries: further attempts, sampled at temperature 0.7, at what can't be read
    """

    classes: Literal["auto", "classify", "math", "general"] = "auto"
    categories: tuple[str, ...] = Field(default=CATEGORIES, strict=False)
    per_seed: int = Field(default=1, ge=1, le=20)
    general_strategies: tuple[str, ...] = Field(default=strategies.GENERAL_NAMES, strict=False)
    math_strategies: tuple[str, ...] = Field(default=strategies.MATH_DEFAULT, strict=False)
    critic: bool = False
    response_gradient: bool = True
    keep: Literal["last", "both"] = "last"
    iterations: int = Field(default=2, ge=0, le=10)
    both_reject: Literal["checker_1", "checker_2"] = "checker_1"
    same_checkers: bool = False
    allow_generator: bool = False
    references: bool = True
    answerers: int = Field(default=2, ge=1, le=20)
    duplicates: float = Field(default=THRESHOLD, gt=0, le=1)
    retries: int = Field(default=1, ge=0, le=10)
    comment_length: int = Field(default=200, ge=1, le=4000)
    question_tokens: int = Field(default=400, ge=1)
    answer_tokens: int = Field(default=800, ge=1)
    quote_limit: int = Field(default=6000, ge=100)

    @model_validator(mode="after")
    def _known_strategies(self) -> IDGenOptions:
        strategies.check(self.general_strategies, strategies.GENERAL_NAMES, "general_strategies")
        strategies.check(self.math_strategies, tuple(strategies.MATH), "math_strategies")
        if len(set(self.categories)) < len(self.categories) or not all(name.strip() for name in self.categories):
            raise ValueError("categories must be names, each once")
        return self
