"""What is asked of a model and what it answers: plain records, standard library only.

Everything else in Proctor imports these; they import nothing of Proctor. All records are frozen, slotted and
keyword-only, so that they can be hashed, sent between processes and compared byte for byte.

``Ask`` and ``Score`` are what an exam protocol or a detector *yields*; ``Request`` and ``ScoreRequest`` are what an
engine *receives*. The scheduler turns the first into the second (it knows which model plays which role).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

ChatRole = Literal["system", "user", "assistant"]
BosPolicy = Literal["model", "always", "never"]
FinishReason = Literal["stop", "length", "context"]
Segment = Literal["bos", "template", "prompt", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a chat. ``content`` is data: special tokens spelled in it stay plain text when rendered."""

    role: ChatRole
    content: str


Prompt = str | tuple[Message, ...]
"""A plain text (completed as it stands) or a chat (rendered through the model's template)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to decode. Always explicit: an engine adds no default of its own and ignores ``generation_config.json``.

    ``seed`` has an effect only where ``temperature`` > 0. ``stop`` strings are cut from the text.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be at least 1")
        if not 0.0 <= self.temperature <= 5.0:
            raise ValueError(f"temperature is {self.temperature}; it must lie in [0, 5]")
        if 0.0 < self.temperature < 0.01:
            raise ValueError(f"temperature is {self.temperature}; use 0 (greedy) or at least 0.01")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p is {self.top_p}; it must lie in (0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One generation. ``schema`` is a canonical JSON Schema text (see ``canonical_json``) or None for free text."""

    prompt: Prompt
    sampling: Sampling
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer.

    text: what the model said, without reasoning and without stop strings
    reasoning: the text inside the model's reasoning tags ("" if none)
    finish_reason: ``stop`` (ended by itself or by a stop string), ``length`` (cut by max_tokens), ``context`` (the
        prompt left no room: nothing was generated)
    complete: False when cut, or when a reasoning tag was left open
    prompt_tokens, output_tokens: counts, reasoning included
    """

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    output_tokens: int
    reasoning: str = ""
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """Token probabilities of a text under a model (teacher forcing).

    prompt: the context, or the whole text where ``continuation`` is empty
    continuation: its tokens form the segment ``answer``; the joint string is tokenised once, and a token that spans
        the boundary belongs to the answer
    answer_only: give values for the answer's tokens only (the prompt's logits are never computed)
    moments: also mean and standard deviation of the log-probabilities under the model's own distribution, entropy
        and rank, over the full vocabulary
    """

    prompt: Prompt
    continuation: str = ""
    bos: BosPolicy = "model"
    answer_only: bool = False
    moments: bool = False

    def __post_init__(self) -> None:
        if self.answer_only and not self.continuation:
            raise ValueError("answer_only needs a continuation: without one there is no answer segment")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScores:
    """The token table of one text: one entry per *predicted* token (the first token of a text has no prediction).

    ids: token ids
    logprobs: l_t = log p(x_t | x_<t), natural logarithm
    segments: ``bos``, ``template``, ``prompt`` or ``answer`` per token
    means, stds: mu_t = E_p[log p], sigma_t = sqrt(Var_p[log p]) over the full vocabulary; empty without ``moments``
    entropies, ranks: -mu_t, and the number of vocabulary entries more probable than x_t (0 = the greedy choice)
    greedy: per token, whether x_t is the most probable token; empty where an engine can't say
    dropped: tokens cut from the beginning because the text was longer than the context
    asked_tokens, computed_tokens: tokens that the model had to read for this table, and those of them that were not
        shared with an earlier text of the batch; what it cost, not what it says, so equality ignores them
    Fewer than one entry (a text of 0 or 1 tokens) means: unscorable.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    segments: tuple[Segment, ...]
    means: tuple[float, ...] = ()
    stds: tuple[float, ...] = ()
    entropies: tuple[float, ...] = ()
    ranks: tuple[int, ...] = ()
    greedy: tuple[bool, ...] = ()
    dropped: int = 0
    asked_tokens: int = field(default=0, compare=False)
    computed_tokens: int = field(default=0, compare=False)

    def answer_logprob(self) -> float:
        """Summed log-probability of the answer's tokens (nats)."""
        return sum(lp for lp, segment in zip(self.logprobs, self.segments, strict=True) if segment == "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A protocol's question to a role: one generation.

    schema: a JSON Schema (mapping); the answer's ``text`` is then a JSON document of that form, unless cut.
    """

    role: str
    prompt: Prompt
    sampling: Sampling
    schema: Mapping[str, Any] | None = field(default=None, hash=False)

    def request(self) -> Request:
        schema = None if self.schema is None else canonical_json(self.schema)
        return Request(prompt=self.prompt, sampling=self.sampling, schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A protocol's or detector's demand for token probabilities from a role."""

    role: str
    prompt: Prompt
    continuation: str = ""
    bos: BosPolicy = "model"
    answer_only: bool = False
    moments: bool = False

    def request(self) -> ScoreRequest:
        return ScoreRequest(
            prompt=self.prompt,
            continuation=self.continuation,
            bos=self.bos,
            answer_only=self.answer_only,
            moments=self.moments,
        )


RecordT = TypeVar("RecordT")
Demand = Ask | Score
Yielded = Demand | Sequence[Demand]
Dialogue = Generator[Yielded, Any, RecordT]
"""A protocol for one item: yields an Ask or a Score (is sent a Completion or TokenScores) or a list of them (is sent a
list, same order), and returns its record."""


def canonical_json(value: Any) -> str:
    """JSON text with one spelling per value: no spaces, keys in the given order (schemas depend on it)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def derive_seed(*parts: str | int) -> int:
    """A 31-bit seed from (experiment seed, item id, protocol step, attempt): independent of order and process."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 1
