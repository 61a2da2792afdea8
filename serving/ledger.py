"""Every answer of a model, on disk before it is used: resuming, replaying and judging again need nothing else.

``ledger/<stage>/<host>-<pid>-<start>.jsonl``: one segment per writer, never reopened, so that jobs on many nodes share
a network file system without locks. A line is ``<crc32, 8 hex digits> <JSON>``; the first is a header, every other one
a batch, written and fsynced whole. A bad line is skipped and counted wherever it stands; an unterminated tail counts
as not yet written. The index in memory holds key -> (file, offset, length), not texts.

In ``lockstep`` mode the unit of lookup is the batch (its key: the fingerprint and its ordered request keys): it is
replayed whole or computed whole, because an answer found elsewhere would shrink the batch and could change its bits.
In the other modes, and for ``rejudge``, lookup is by request.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, NamedTuple

from serving import ledger as codec
from serving.files import naming
from serving.records import Completion, Prompt, Request, ScoreRequest, TokenScores

SCHEMA = 1
Answer = Completion | TokenScores


class AnswerPlace(NamedTuple):
    """Where an answer lies: segment file, line's byte offset and length, position in its batch."""

    path: Path
    offset: int
    length: int
    position: int


def request_key(fingerprint: str, request: Request | ScoreRequest) -> str:
    """SHA-256 of (engine fingerprint, prompt, sampling with its seed, output schema)."""
    text = fingerprint + "\0" + codec.dumps(codec.encode_request(request))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def batch_key(fingerprint: str, keys: Sequence[str]) -> str:
    """SHA-256 of the fingerprint and the ordered request keys of a batch."""
    return hashlib.sha256("\0".join([fingerprint, *keys]).encode()).hexdigest()


@dataclass
class Usage:
    """What a stage asked of one role: for the estimate before a run and the account after it.

    prompt_tokens: read by the model, a scored text's own included; computed_tokens: of those the ones that weren't
    shared with an earlier text of the same batch (scoring; what vLLM shares inside isn't known here)
    seconds: of the engine, without ``loading`` its model
    """

    calls: int = 0
    replayed: int = 0
    prompt_tokens: int = 0
    computed_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    loading: float = 0.0


class Ledger:
    """Append-only log of batches. One instance per stage process; ``folder=None`` keeps nothing on disk."""

    def __init__(self, folder: Path | None, *, inputs: Iterable[Path] = ()) -> None:
        self.folder = folder
        self.bad_lines = 0
        self._batches: dict[str, AnswerPlace] = {}
        self._requests: dict[str, AnswerPlace] = {}
        self._stream: IO[bytes] | None = None
        self._path: Path | None = None
        for source in [*inputs, *([folder] if folder else [])]:
            for segment in sorted(source.glob("*.jsonl")):
                self._read(segment)

    def __len__(self) -> int:
        """Number of distinct requests answered."""
        return len(self._requests)

    def find_batch(self, key: str) -> list[Answer] | None:
        """The answers of a whole batch, or None."""
        place = self._batches.get(key)
        if place is None:
            return None
        return [codec.decode_answer(row) for row in self._load(place)["answers"]]

    def find_request(self, key: str) -> Answer | None:
        """The answer to one request, or None."""
        place = self._requests.get(key)
        if place is None:
            return None
        return codec.decode_answer(self._load(place)["answers"][place.position])

    def append(
        self,
        *,
        role: str,
        fingerprint: str,
        mode: str,
        requests: Sequence[Request | ScoreRequest],
        answers: Sequence[Answer],
        seconds: float,
    ) -> None:
        """Writes one batch, whole, and syncs it to disk."""
        if self.folder is None:
            return
        keys = [request_key(fingerprint, request) for request in requests]
        batch = batch_key(fingerprint, keys)
        line = {
            "batch": batch,
            "role": role,
            "fingerprint": fingerprint,
            "mode": mode,
            "seconds": round(seconds, 3),
            "keys": keys,
            "requests": [codec.encode_request(request) for request in requests],
            "answers": [codec.encode_answer(answer) for answer in answers],
        }
        data = _line(line)
        stream = self._open()
        offset = stream.tell()
        assert self._path is not None
        with naming(self._path):
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        self._note(batch, keys, self._path, offset, len(data))

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _open(self) -> IO[bytes]:
        if self._stream is None:
            assert self.folder is not None
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}.jsonl"
            self._path = self.folder / name
            self._stream = self._path.open("xb")
            with naming(self._path):
                self._stream.write(_line({"schema": SCHEMA, "created": int(time.time())}))
        return self._stream

    def _note(self, batch: str, keys: Sequence[str], path: Path, offset: int, length: int) -> None:
        self._batches[batch] = AnswerPlace(path, offset, length, 0)
        for position, key in enumerate(keys):
            self._requests.setdefault(key, AnswerPlace(path, offset, length, position))

    def _read(self, segment: Path) -> None:
        offset = 0
        with segment.open("rb") as stream:
            for raw in stream:
                start, offset = offset, offset + len(raw)
                if not raw.endswith(b"\n"):
                    break  # the tail of a writer that was killed, or is still writing
                line = _parse(raw)
                if line is None:
                    self.bad_lines += 1
                elif "batch" in line:
                    if _whole(line):
                        self._note(line["batch"], line["keys"], segment, start, len(raw))
                    else:
                        self.bad_lines += 1
                elif line.get("schema") != SCHEMA:
                    raise ValueError(
                        f"ledger segment {segment} has schema {line.get('schema')}, this version reads {SCHEMA}; "
                        "move the run folder away and start a new one"
                    )

    def _load(self, place: AnswerPlace) -> dict[str, Any]:
        with place.path.open("rb") as stream:
            stream.seek(place.offset)
            line = _parse(stream.read(place.length))
        if line is None:
            raise RuntimeError(f"ledger segment {place.path} changed while it was read (offset {place.offset})")
        return line


def read_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Every whole batch of a folder's segments, in order: for whoever reads what was asked and answered."""
    for segment in sorted(folder.glob("*.jsonl")):
        with segment.open("rb") as stream:
            for raw in stream:
                line = _parse(raw) if raw.endswith(b"\n") else None
                if line is not None and "batch" in line and _whole(line):
                    yield line


def _whole(line: dict[str, Any]) -> bool:
    """Whether a batch has the shape that ``append`` writes: a line may have a right CRC and another shape."""
    keys, requests, answers = (line.get(name) for name in ("keys", "requests", "answers"))
    if not (isinstance(line["batch"], str) and isinstance(keys, list) and isinstance(answers, list)):
        return False
    if not (isinstance(requests, list) and len(keys) == len(requests) == len(answers)):
        return False
    return (
        all(isinstance(key, str) for key in keys)
        and all(isinstance(request, dict) and "prompt" in request for request in requests)
        and all(_is_answer(answer) for answer in answers)
    )


_TEXT: dict[str, set[type]] = {"text": {str}, "finish_reason": {str}, "prompt_tokens": {int}, "output_tokens": {int}}
_TABLE: dict[str, set[type]] = {"ids": {int}, "logprobs": {float, int}, "segments": {str}}
_REST: dict[str, set[type]] = {
    **{"reasoning": {str}, "complete": {bool}},
    **{"means": {float, int}, "stds": {float, int}, "entropies": {float, int}, "ranks": {int}, "greedy": {bool}},
    **{"dropped": {int}, "asked_tokens": {int}, "computed_tokens": {int}},
}
_COUNTS = frozenset({"dropped", "asked_tokens", "computed_tokens"})


def _is_answer(row: Any) -> bool:
    """Whether it is what ``encode_answer`` writes: every field there is, of its type."""
    if not isinstance(row, dict):
        return False
    table = "logprobs" in row
    record: type[Answer] = TokenScores if table else Completion
    needed = _TABLE if table else _TEXT
    if not needed.keys() <= row.keys() <= {field.name for field in fields(record)}:
        return False
    for name, value in row.items():
        kinds = needed.get(name) or _REST[name]
        if not table or name in _COUNTS:
            if type(value) not in kinds:
                return False
        elif not isinstance(value, list) or not set(map(type, value)) <= kinds:
            return False
    return not table or len(row["ids"]) == len(row["logprobs"]) == len(row["segments"])


def _line(value: dict[str, Any]) -> bytes:
    body = codec.dumps(value).encode("utf-8", "surrogatepass")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _parse(raw: bytes) -> dict[str, Any] | None:
    crc, _, body = raw.rstrip(b"\n").partition(b" ")
    try:
        if int(crc, 16) != zlib.crc32(body):
            return None
        value = json.loads(body.decode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def dumps(value: Any) -> str:
    """Compact JSON with sorted keys; floats as Python's shortest exact form, so they come back bit for bit."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _encode_prompt(prompt: Prompt) -> Any:
    return prompt if isinstance(prompt, str) else [[m.role, m.content] for m in prompt]


def encode_request(request: Request | ScoreRequest) -> dict[str, Any]:
    row = _fields(request) | {"prompt": _encode_prompt(request.prompt)}
    if isinstance(request, Request):
        sampling = request.sampling
        numbers = {"temperature": float(sampling.temperature), "top_p": float(sampling.top_p)}  # 0 and 0.0: one key
        return row | {"sampling": _fields(sampling) | numbers | {"stop": list(sampling.stop)}}
    return row


def encode_answer(answer: Completion | TokenScores) -> dict[str, Any]:
    return _fields(answer)


def decode_answer(row: dict[str, Any]) -> Completion | TokenScores:
    if "logprobs" in row:
        columns: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        return TokenScores(**columns)
    return Completion(**row)


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}
