"""Records to JSON and back, exactly: the ledger's line format. Standard library only."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from serving.records import Completion, Message, Prompt, Request, Sampling, ScoreRequest, TokenScores


def dumps(value: Any) -> str:
    """Compact JSON with sorted keys; floats as Python's shortest exact form, so they come back bit for bit."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _encode_prompt(prompt: Prompt) -> Any:
    return prompt if isinstance(prompt, str) else [[m.role, m.content] for m in prompt]


def _decode_prompt(value: Any) -> Prompt:
    return value if isinstance(value, str) else tuple(Message(role=role, content=content) for role, content in value)


def encode_request(request: Request | ScoreRequest) -> dict[str, Any]:
    row = _fields(request) | {"prompt": _encode_prompt(request.prompt)}
    if isinstance(request, Request):
        sampling = request.sampling
        numbers = {"temperature": float(sampling.temperature), "top_p": float(sampling.top_p)}  # 0 and 0.0: one key
        return row | {"sampling": _fields(sampling) | numbers | {"stop": list(sampling.stop)}}
    return row


def decode_request(row: dict[str, Any]) -> Request | ScoreRequest:
    row = row | {"prompt": _decode_prompt(row["prompt"])}
    if "sampling" in row:
        sampling = Sampling(**{**row["sampling"], "stop": tuple(row["sampling"]["stop"])})
        return Request(**{**row, "sampling": sampling})
    return ScoreRequest(**row)


def encode_answer(answer: Completion | TokenScores) -> dict[str, Any]:
    return _fields(answer)


def decode_answer(row: dict[str, Any]) -> Completion | TokenScores:
    if "logprobs" in row:
        columns: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        return TokenScores(**columns)
    return Completion(**row)


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}
