"""A model made of rules, for tests of protocol logic and for ``--dry-run``: no weights, no tokenizer.

``engine_args.replies`` is a list of ``{match: regular expression, reply: text}``; the first rule whose expression is
found in the prompt answers. In a reply, ``{word}`` is a word of its own at every place and for every prompt, and
``{number}`` counts lines where the rule has ``lines``: the name of a group of ``match``, a number, that says how often
the reply is written, one line each. Without a rule, an answer of a schema is its smallest valid document, and free text
is a short sentence that depends on the prompt. Log-probabilities depend on the words alone. ``engine_args.seconds`` is
how long a batch takes.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from serving.model.spec import ModelSpec
from serving.records import Completion, Prompt, Request, ScoreRequest, Segment, TokenScores


class ScriptedBackend:
    def __init__(self, spec: ModelSpec) -> None:
        rules = spec.engine_args.get("replies", [])
        self._seconds = float(spec.engine_args.get("seconds", 0.0))
        self._rules = [(re.compile(rule["match"], re.DOTALL), rule) for rule in rules]

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        time.sleep(self._seconds)
        return [self._answer(request) for request in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        time.sleep(self._seconds)
        return [_score(request) for request in requests]

    def _answer(self, request: Request) -> Completion:
        prompt = _flat(request.prompt)
        found = ((match, rule) for pattern, rule in self._rules if (match := pattern.search(prompt)))
        text = next((_filled(rule, match, f"{prompt}\0{request.sampling.seed}") for match, rule in found), None)
        if text is None and request.schema is not None:
            text = json.dumps(smallest(json.loads(request.schema)))
        if text is None:
            digest = hashlib.sha256(f"{prompt}\0{request.sampling.seed}".encode("utf-8", "replace")).hexdigest()
            text = f"This is scripted reply {digest[:8]}."
        words = text.split()
        cut = len(words) > request.sampling.max_tokens and request.schema is None
        if cut:
            text = " ".join(words[: request.sampling.max_tokens])
        return Completion(
            text=text,
            finish_reason="length" if cut else "stop",
            complete=not cut,
            prompt_tokens=len(prompt.split()),
            output_tokens=len(text.split()),
        )


def _filled(rule: Mapping[str, Any], match: re.Match[str], key: str) -> str:
    """A rule's reply, its lines repeated and its places filled; words depend on the key."""
    lines = int(match[rule["lines"]]) if "lines" in rule else 1
    text = "\n".join(str(rule["reply"]).replace("{number}", str(number)) for number in range(1, lines + 1))
    parts = text.split("{word}")
    words = [hashlib.sha256(f"{key}\0{i}".encode("utf-8", "replace")).hexdigest()[:8] for i in range(len(parts))]
    return parts[0] + "".join(word + part for word, part in zip(words, parts[1:], strict=False))


def smallest(schema: dict[str, Any]) -> Any:
    """The smallest document of a JSON Schema (the subset that Proctor's protocols use)."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object":
        return {name: smallest(schema["properties"][name]) for name in schema.get("required", [])}
    if kind == "array":
        return [smallest(schema["items"]) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "boolean":
        return False
    return "x" * schema.get("minLength", 0)


def _flat(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(f"{m.role}: {m.content}" for m in prompt)


def _score(request: ScoreRequest) -> TokenScores:
    prompt, answer = _flat(request.prompt).split(), request.continuation.split()
    tokens: list[tuple[str, Segment]] = [(word, "prompt") for word in prompt] + [(word, "answer") for word in answer]
    tokens = [pair for pair in tokens[1:] if not request.answer_only or pair[1] == "answer"]
    hashes = [int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4], "big") for word, _ in tokens]
    logprobs = tuple(-(value % 997) / 100 for value in hashes)
    moments = len(logprobs) if request.moments else 0
    return TokenScores(
        ids=tuple(value % 50_000 for value in hashes),
        logprobs=logprobs,
        segments=tuple(segment for _, segment in tokens),
        means=(-5.0,) * moments,
        stds=(2.5,) * moments,
        entropies=(5.0,) * moments,
        ranks=tuple(value % 997 for value in hashes)[:moments],
        greedy=tuple(value % 997 == 0 for value in hashes),
    )
