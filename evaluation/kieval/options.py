"""The settings of KIEval's interview, of its opening alone, and of its judge alone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from evaluation.asking.form import FREE_VERDICT_TOKENS, check_room
from evaluation.kieval.verdict import verdict_tokens
from evaluation.protocol import ProtocolOptions


class OpeningOptions(ProtocolOptions):
    """candidate_tokens: max_tokens of a candidate's answer
    candidate_format: ``chat``, or ``plain`` for a candidate without a chat template: a transcript with stop strings
    """

    candidate_tokens: int = Field(default=256, ge=1)
    candidate_format: Literal["chat", "plain"] = "chat"


class RoundJudgeOptions(ProtocolOptions):
    """retries: further attempts at a verdict that doesn't parse, sampled at temperature 0.7; the first is greedy
    verdict: ``structured`` (JSON enforced by a grammar) or ``free`` (text, read leniently)
    comment_length: characters of each comment in a structured verdict; 24 suits very small models
    evaluator_tokens: max_tokens of a verdict; the default is what the longest can need (structured), or 400 (free)
    quote_limit: characters kept of one quoted text in the interactor's and the evaluator's prompts
    votes: verdicts asked for per round; one is greedy, of several, sampled at temperature 0.7 with seeds of their own,
        the majority counts (``judge.majority``)
    overflow: where a prompt leaves no room for its answer: ``drop_oldest`` asks again with the oldest rounds left out,
        ``stop`` takes it as it is
    """

    retries: int = Field(default=2, ge=0, le=10)
    verdict: Literal["structured", "free"] = "structured"
    comment_length: int = Field(default=80, ge=1, le=2000)
    evaluator_tokens: int | None = Field(default=None, ge=1)
    quote_limit: int = Field(default=4000, ge=100)
    votes: int = Field(default=1, ge=1, le=25)
    overflow: Literal["drop_oldest", "stop"] = "drop_oldest"

    @model_validator(mode="after")
    def _room_for_a_verdict(self) -> RoundJudgeOptions:
        if self.verdict == "structured":
            needed = verdict_tokens(self.comment_length)
            check_room(self.evaluator_tokens, needed, f"comments of {self.comment_length}")
        return self

    def verdict_tokens(self) -> int:
        """max_tokens of a verdict."""
        needed = verdict_tokens(self.comment_length) if self.verdict == "structured" else FREE_VERDICT_TOKENS
        return self.evaluator_tokens or needed


class KIEvalOptions(RoundJudgeOptions, OpeningOptions):
    """Those of the opening and of the judge, and
    rounds: n, the follow-up questions allowed (paper: 5)
    interactor_tokens: max_tokens of a question
    early_stop: whether the evaluator's wish to stop ends the interview
    """

    rounds: int = Field(default=5, ge=1, le=50)
    interactor_tokens: int = Field(default=128, ge=1)
    early_stop: bool = True
