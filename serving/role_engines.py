"""Who plays which role: engines, opened at the first request the ledger cannot answer.

Roles that name the same model share one engine, and so do adapters of one base where vLLM serves it. Scoring always
goes to the transformers engine (full vocabulary), unless the model is scripted or a server's; generation to the engine
the model's spec names. On a GPU, engines whose memory shares do not fit together are never open at once: the idle one
is put to sleep (vLLM's ``enable_sleep_mode``) or closed first.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from serving.engines.base import Engine, ManyAdapters
from serving.engines.process import ProcessEngine
from serving.engines.server_engine import ServerEngine
from serving.ledger import Answer, Ledger, Usage, batch_key, request_key
from serving.model.adapters import limits
from serving.model.fingerprint import check_model_folder, device_name, fingerprint, resolve_model
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, ScoreRequest

Mode = Literal["lockstep", "batch-invariant", "fast"]
Kind = Literal["generate", "score"]


@dataclass
class Seat:
    """One engine and its lock: batches of several waves are computed one after the other.

    adapters: whether requests must say which adapter they are for
    """

    spec: ModelSpec
    engine: Engine
    adapters: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    started: bool = False


class Destination(NamedTuple):
    """Where a role's requests go: the engine, the adapter they are for, and the fingerprint of the two."""

    seat: Seat
    fingerprint: str
    adapter: str | None = None


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
        self._by_role: dict[tuple[str, Kind], Destination] = {}
        self._opening = threading.Lock()
        self._writing = threading.Lock()
        name, threads = device_and_threads()
        used: dict[tuple[str, Kind], ModelSpec] = {}
        for role, spec in roles.items():
            if spec.engine != "scripted":
                check_model_folder(resolve_model(spec), allow_pickle=spec.allow_pickle)
            used |= {(role, "generate"): spec, (role, "score"): scoring_spec(spec)}
        families = _families(used.values())
        for place, spec in used.items():
            base = _base_of(spec)
            adapters = families.get(base.model_dump_json(), ()) if spec.engine == "vllm" else ()
            room = limits(adapters)
            served = spec.engine == "server"
            key = self._join(spec) if served else fingerprint(spec, mode=mode, device=name, lora=room)
            owner = fingerprint(base, mode=mode, device=name, lora=room) if adapters else key
            if owner not in self._seats:
                more: dict[str, Any] = {"adapters": adapters} if adapters else {}
                make = ServerEngine if served else make_engine
                engine = make(base if adapters else spec, fingerprint=owner, mode=mode, threads=threads, **more)
                self._seats[owner] = Seat(spec, engine, adapters=bool(adapters))
            self._by_role[place] = Destination(self._seats[owner], key, spec.adapter)
        self._on_cpu = threads is not None

    def fingerprint(self, role: str, kind: Kind) -> str:
        return self._place(role, kind).fingerprint

    @property
    def side_by_side(self) -> bool:
        """Whether the roles generate on several engines that a GPU machine keeps open at once: then a second wave keeps
        the one busy while the other is asked. On a CPU they share the cores, and nothing is won."""
        seats = {id(place.seat): place.seat for (_, kind), place in self._by_role.items() if kind == "generate"}
        shares = sum(seat.spec.memory_share for seat in seats.values() if seat.spec.engine != "server")
        return len(seats) > 1 and not self._on_cpu and shares <= 1.0

    def answer(self, role: str, requests: Sequence[Request] | Sequence[ScoreRequest]) -> list[Answer]:
        """Answers a batch, order kept. Identical requests are computed once; answers are on disk before returning."""
        if not requests:
            return []
        kind: Kind = "generate" if isinstance(requests[0], Request) else "score"
        place = self._place(role, kind)
        keys = [request_key(place.fingerprint, request) for request in requests]
        unique = dict(zip(keys, requests, strict=True))
        usage = self.usage[role]
        found: dict[str, Answer] = {}
        if self.mode == "lockstep":
            stored = self.ledger.find_batch(batch_key(place.fingerprint, list(unique)))
            if stored is not None:
                found = dict(zip(unique, stored, strict=True))
        else:
            found = {key: answer for key in unique if (answer := self.ledger.find_request(key)) is not None}
        missing = [key for key in unique if key not in found]
        usage.replayed += len(unique) - len(missing)
        if missing:
            found.update(zip(missing, self._compute(role, kind, place, [unique[key] for key in missing]), strict=True))
        for key in unique:
            _count(usage, found[key])
        return [found[key] for key in keys]

    def _join(self, spec: ModelSpec) -> str:
        """The fingerprint of a served model. ValueError if this mode can't keep its promise with it."""
        if self.mode == "lockstep":
            raise ValueError(
                f"model {spec.path}: what a server answers can depend on who else asks, which mode lockstep rules out; "
                "use mode fast (or batch-invariant, where the server is)"
            )
        return ServerEngine.fingerprint_of(spec, self.mode, on_wait=self._on_start)

    def close(self) -> None:
        for seat in self._seats.values():
            seat.engine.close()
            seat.started = False

    def __exit__(self, *_: object) -> None:
        self.close()

    def _place(self, role: str, kind: Kind) -> Destination:
        try:
            return self._by_role[role, kind]
        except KeyError:
            known = ", ".join(sorted({name for name, _ in self._by_role}))
            raise ValueError(f"no model plays the role {role!r}; the roles here are: {known}") from None

    def _compute(self, role: str, kind: Kind, place: Destination, requests: Sequence[Any]) -> list[Answer]:
        seat = place.seat
        with seat.lock:
            self._open(seat)
            start, before = time.perf_counter(), _load_seconds(seat.engine)
            answers: list[Answer]
            if kind == "score":
                answers = list(seat.engine.score(requests))
            elif seat.adapters:
                engine = cast(ManyAdapters, seat.engine)
                answers = list(engine.generate_with([place.adapter] * len(requests), requests))
            else:
                answers = list(seat.engine.generate(requests))
            loading = _load_seconds(seat.engine) - before
            seconds = time.perf_counter() - start - loading
        if len(answers) != len(requests):
            raise RuntimeError(
                f"the engine of {seat.spec.path} gave {len(answers)} answers to {len(requests)} requests"
            )
        with self._writing:
            self.usage[role].seconds += seconds
            self.usage[role].loading += loading
            self.ledger.append(
                role=role,
                fingerprint=place.fingerprint,
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
        """Puts started engines to sleep, or closes them, until the memory shares fit on one set of GPUs."""
        with ExitStack() as held:
            for seat in list(self._seats.values()):
                if seat is wanted or not seat.started:
                    continue
                others = sum(s.spec.memory_share for s in self._seats.values() if s.started)
                if others + wanted.spec.memory_share <= 1.0:
                    return
                held.enter_context(seat.lock)
                if not _sleeps(seat.engine):
                    seat.engine.close()
                seat.started = False


def device_and_threads() -> tuple[str, int | None]:
    """The device as it goes into fingerprints, and how many threads an engine gets on a CPU (None on a GPU).

    The number of threads is part of the device's name: it decides the order of sums.
    """
    device = device_name()
    if device != "cpu":
        return device, None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"cpu x{cores}", cores


def check_mode(mode: str) -> None:
    """ValueError if this machine can't keep what the mode promises."""
    if mode == "batch-invariant" and device_name() == "cpu":
        raise ValueError(
            "mode batch-invariant needs vLLM's batch-invariant kernels (a GPU of compute capability 8.0 or more); this "
            "machine has none: use lockstep, or declare the device of the nodes that will run it in PROCTOR_DEVICE"
        )


def scoring_spec(spec: ModelSpec) -> ModelSpec:
    """The spec under which a model scores: the transformers engine, in ``score_dtype``; a server's scores there.

    (An adapter on a server doesn't: vLLM can't score with one.)
    """
    if spec.engine == "scripted" or (spec.engine == "server" and not spec.adapter):
        return spec
    arguments = spec.engine_args if spec.engine == "transformers" else {}
    return spec.model_copy(update={"engine": "transformers", "dtype": spec.score_dtype, "engine_args": arguments})


def _sleeps(engine: Any) -> bool:
    """Puts an engine to sleep, which frees its GPU and is quicker than loading again; False if it can't."""
    sleep = getattr(engine, "sleep", None)
    return bool(sleep()) if sleep is not None else False


def _load_seconds(engine: Any) -> float:
    """Seconds that an engine has spent on loading its model, so far."""
    return float(getattr(engine, "load_seconds", 0.0))


def _base_of(spec: ModelSpec) -> ModelSpec:
    return spec.model_copy(update={"adapter": None})


def _families(specs: Iterable[ModelSpec]) -> dict[str, tuple[str, ...]]:
    """The adapters that vLLM serves beside each base, sorted."""
    found: dict[str, set[str]] = {}
    for spec in specs:
        if spec.engine == "vllm" and spec.adapter:
            found.setdefault(_base_of(spec).model_dump_json(), set()).add(spec.adapter)
    return {base: tuple(sorted(adapters)) for base, adapters in found.items()}


def _count(usage: Usage, answer: Answer) -> None:
    usage.calls += 1
    if isinstance(answer, Completion):
        usage.prompt_tokens += answer.prompt_tokens
        usage.computed_tokens += answer.prompt_tokens
        usage.output_tokens += answer.output_tokens
    else:
        usage.prompt_tokens += max(answer.asked_tokens, len(answer.ids))
        usage.computed_tokens += answer.computed_tokens
