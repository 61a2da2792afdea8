"""Who plays which role: engines, opened at the first request the ledger cannot answer.

Roles that name the same model share one engine. Scoring always goes to the transformers engine (full vocabulary),
unless the model is scripted; generation to the engine the model's spec names. On a GPU, engines whose memory shares
do not fit together are never open at once: the idle one is closed first.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from serving.engines.base import Engine
from serving.engines.process import ProcessEngine
from serving.fingerprint import check_model_folder, device_name, fingerprint, resolve_model
from serving.ledger import Answer, Ledger, Usage, batch_key, request_key
from serving.models import ModelSpec
from serving.records import Completion, Request, ScoreRequest

Mode = Literal["lockstep", "batch-invariant", "fast"]
Kind = Literal["generate", "score"]


@dataclass
class Seat:
    """One engine and its lock: batches of several waves are computed one after the other."""

    spec: ModelSpec
    engine: Engine
    lock: threading.Lock = field(default_factory=threading.Lock)
    started: bool = False


class Cast(AbstractContextManager["Cast"]):
    """Engines by role, behind the ledger. ``usage`` counts calls, tokens and seconds per role."""

    def __init__(
        self,
        roles: Mapping[str, ModelSpec],
        *,
        ledger: Ledger,
        mode: Mode,
        make_engine: Callable[..., Engine] = ProcessEngine,
        on_start: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.ledger = ledger
        self.mode: Mode = mode
        self.usage: dict[str, Usage] = {role: Usage() for role in roles}
        self._on_start = on_start
        self._seats: dict[str, Seat] = {}
        self._by_role: dict[tuple[str, Kind], Seat] = {}
        self._opening = threading.Lock()
        self._writing = threading.Lock()
        device = device_name()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = cores if device == "cpu" else None
        name = f"cpu x{threads}" if device == "cpu" else device
        for role, spec in roles.items():
            if spec.engine != "scripted":
                check_model_folder(resolve_model(spec), allow_pickle=spec.allow_pickle)
            for kind in ("generate", "score"):
                used = scoring_spec(spec) if kind == "score" else spec
                key = fingerprint(used, mode=mode, device=name)
                if key not in self._seats:
                    engine = make_engine(used, fingerprint=key, mode=mode, threads=threads)
                    self._seats[key] = Seat(used, engine)
                self._by_role[role, kind] = self._seats[key]
        self._on_cpu = device == "cpu"

    def fingerprint(self, role: str, kind: Kind) -> str:
        return self._seat(role, kind).engine.fingerprint

    def same_engine(self, first: str, second: str, kind: Kind = "generate") -> bool:
        return self._seat(first, kind) is self._seat(second, kind)

    def answer(self, role: str, requests: Sequence[Request] | Sequence[ScoreRequest]) -> list[Answer]:
        """Answers a batch, order kept. Identical requests are computed once; answers are on disk before returning."""
        if not requests:
            return []
        kind: Kind = "generate" if isinstance(requests[0], Request) else "score"
        seat = self._seat(role, kind)
        keys = [request_key(seat.engine.fingerprint, request) for request in requests]
        unique = dict(zip(keys, requests, strict=True))
        usage = self.usage[role]
        found: dict[str, Answer] = {}
        if self.mode == "lockstep":
            stored = self.ledger.find_batch(batch_key(seat.engine.fingerprint, list(unique)))
            if stored is not None:
                found = dict(zip(unique, stored, strict=True))
        else:
            found = {key: answer for key in unique if (answer := self.ledger.find_request(key)) is not None}
        missing = [key for key in unique if key not in found]
        usage.replayed += len(unique) - len(missing)
        if missing:
            found.update(zip(missing, self._compute(role, kind, seat, [unique[key] for key in missing]), strict=True))
        for key in unique:
            _count(usage, found[key])
        return [found[key] for key in keys]

    def close(self) -> None:
        for seat in self._seats.values():
            seat.engine.close()
            seat.started = False

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seat(self, role: str, kind: Kind) -> Seat:
        try:
            return self._by_role[role, kind]
        except KeyError:
            known = ", ".join(sorted({name for name, _ in self._by_role}))
            raise ValueError(f"no model plays the role {role!r}; the roles here are: {known}") from None

    def _compute(self, role: str, kind: Kind, seat: Seat, requests: Sequence[Any]) -> list[Answer]:
        with seat.lock:
            self._open(seat)
            start = time.perf_counter()
            answers: list[Answer] = list(
                seat.engine.generate(requests) if kind == "generate" else seat.engine.score(requests)
            )
            seconds = time.perf_counter() - start
        if len(answers) != len(requests):
            raise RuntimeError(
                f"the engine of {seat.spec.path} gave {len(answers)} answers to {len(requests)} requests"
            )
        with self._writing:
            self.usage[role].seconds += seconds
            self.ledger.append(
                role=role,
                fingerprint=seat.engine.fingerprint,
                mode=self.mode,
                requests=requests,
                answers=answers,
                seconds=seconds,
            )
        return answers

    def _open(self, seat: Seat) -> None:
        if seat.started:
            return
        with self._opening:
            if not self._on_cpu:
                self._make_room(seat)
            self._on_start(f"loading {seat.spec.path} ({seat.spec.engine})")
            seat.started = True

    def _make_room(self, wanted: Seat) -> None:
        """Closes started engines until the memory shares fit on one set of GPUs."""
        with ExitStack() as held:
            for seat in list(self._seats.values()):
                if seat is wanted or not seat.started:
                    continue
                others = sum(s.spec.memory_share for s in self._seats.values() if s.started)
                if others + wanted.spec.memory_share <= 1.0:
                    return
                held.enter_context(seat.lock)
                seat.engine.close()
                seat.started = False


def check_mode(mode: str) -> None:
    """ValueError if this machine can't keep what the mode promises."""
    if mode == "batch-invariant" and device_name() == "cpu":
        raise ValueError(
            "mode batch-invariant needs vLLM's batch-invariant kernels (a GPU of compute capability 8.0 or more); this "
            "machine has none: use lockstep, or declare the device of the nodes that will run it in PROCTOR_DEVICE"
        )


def scoring_spec(spec: ModelSpec) -> ModelSpec:
    """The spec under which a model scores: the transformers engine, in ``score_dtype``."""
    if spec.engine == "scripted":
        return spec
    arguments = spec.engine_args if spec.engine == "transformers" else {}
    return spec.model_copy(update={"engine": "transformers", "dtype": spec.score_dtype, "engine_args": arguments})


def _count(usage: Usage, answer: Answer) -> None:
    usage.calls += 1
    if isinstance(answer, Completion):
        usage.prompt_tokens += answer.prompt_tokens
        usage.computed_tokens += answer.prompt_tokens
        usage.output_tokens += answer.output_tokens
    else:
        usage.prompt_tokens += max(answer.asked_tokens, len(answer.ids))
        usage.computed_tokens += answer.computed_tokens
