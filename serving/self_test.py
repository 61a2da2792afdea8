"""What this machine makes of a model: do both engines give the same scores, and does an answer depend on its batch?

Six texts are scored and six questions answered, in two orders and alone; where adapters are served, base and adapters
together and each alone. The figures are kept under the model's fingerprint, so that a model is measured once per
machine, engine, versions and mode.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from serving.engines.process import ProcessEngine
from serving.files import write_text
from serving.model.adapters import limits
from serving.model.embedded import cache_folder
from serving.model.fingerprint import fingerprint
from serving.model.spec import ModelSpec
from serving.records import Completion, Message, Request, Sampling, ScoreRequest, TokenScores
from serving.role_engines import Mode, device_and_threads, scoring_spec

TEXTS = (
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "def add(a, b):\n    return a + b\n",
    "Grass green is sleep the quickly of.",
    "In 1969, two men walked on the moon for the first time.",
    "Question: What is 7 times 8?\nAnswer: 56",
    "Water boils at a lower temperature on a high mountain, because the air above it weighs less than at the sea.",
)
QUESTIONS = (
    "What is the capital of France?",
    "Name three colours of the rainbow, one to a line.",
    "Is water wet? Say why in one sentence.",
    "Who wrote Hamlet?",
    "What do bees make, and how?",
    "Write a short sentence about the moon.",
)
SCORES = [ScoreRequest(prompt=text) for text in TEXTS]
GREEDY = [
    Request(prompt=(Message(role="user", content=question),), sampling=Sampling(max_tokens=24))
    for question in QUESTIONS
]
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.05, "float16": 0.05}
"""Largest mean difference of a token's log-probability, in nats, that rounding explains."""

Figures = dict[str, Any]


def measure(spec: ModelSpec, *, mode: Mode, say: Callable[[str], None] = lambda text: None) -> Figures:
    """The figures of one model, measured now or found from before; loads it once per engine.

    ``parity_mean``, ``parity_max``: both engines' log-probabilities of the texts (nats; None: only one engine is here)
    ``score_order``, ``score_alone``: largest difference by order, and alone instead of together, per scoring engine
    ``answers_repeat``, ``answers_order``, ``answers_alone``: answers of six that changed
    ``adapters_mixed_up``: answers of base and adapter, asked together, that are the other's (None: no adapter)
    """
    device, threads = device_and_threads()
    room = limits([spec.adapter]) if spec.adapter and spec.engine == "vllm" else None
    key = fingerprint(spec, mode=mode, device=device, lora=room)
    stored = find(key)
    if stored is not None:
        return stored
    start = time.monotonic()
    dtype = _dtype(spec, device)
    figures: Figures = {"model": spec.path, "engine": spec.engine, "mode": mode, "dtype": dtype, "device": device}
    say(f"scoring with {spec.path} (transformers)")
    scorer = scoring_spec(spec.model_copy(update={"score_dtype": dtype}))
    ours, figures["score_order"], figures["score_alone"] = _scores(ProcessEngine, scorer, mode, threads)
    figures["parity_mean"] = figures["parity_max"] = figures["adapters_mixed_up"] = None
    say(f"answers and scores of {spec.path} ({spec.engine})")
    adapters: dict[str, Any] = {"adapters": (spec.adapter,)} if room is not None else {}
    engine = ProcessEngine(spec, fingerprint=key, mode=mode, threads=threads, **adapters)
    try:
        figures |= _answers(engine, GREEDY)
        if spec.engine == "vllm" and not spec.adapter:
            theirs = engine.score(SCORES)
            figures["parity_mean"], figures["parity_max"] = difference(ours, theirs)
            figures["vllm_score_order"] = difference(theirs, engine.score(SCORES[::-1])[::-1])[1]
        if room is not None:
            figures["adapters_mixed_up"] = _adapters(engine, str(spec.adapter))
    finally:
        engine.close()
    figures |= {"tolerance": TOLERANCE[dtype], "seconds": round(time.monotonic() - start, 1)}
    keep(key, figures)
    return figures


def warnings(figures: Figures) -> list[str]:
    """What is amiss, in sentences; empty where the model is as it should be."""
    found = []
    allowed = figures["tolerance"]
    if figures["parity_mean"] is not None and not figures["parity_mean"] <= allowed:
        found.append(
            f"vllm and transformers differ by {figures['parity_mean']:.2g} nats per token on average, {allowed:g} is "
            f"what rounding explains in {figures['dtype']}: one of them computes another model"
        )
    if not figures["score_order"] <= allowed or not figures["score_alone"] <= 10 * allowed:
        found.append(
            f"scores depend on the batch (order {figures['score_order']:.2g}, alone {figures['score_alone']:.2g} nats)"
        )
    if figures["answers_repeat"]:
        found.append(f"{figures['answers_repeat']} of {len(GREEDY)} greedy answers changed when asked again")
    if figures["mode"] == "batch-invariant" and (figures["answers_alone"] or figures["answers_order"]):
        found.append("answers depend on the batch, which mode batch-invariant rules out; use lockstep")
    if figures["adapters_mixed_up"]:
        found.append(
            f"{figures['adapters_mixed_up']} of the answers of base and adapter, asked together, are the other's"
        )
    return found


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    parity = (
        f"parity of engines {figures['parity_mean']:.2g} nats mean, {figures['parity_max']:.2g} largest"
        if figures["parity_mean"] is not None
        else "parity of engines not measured (one engine)"
    )
    n = len(GREEDY)
    return [
        f"{parity} ({figures['dtype']}, tolerance {figures['tolerance']:g} mean); "
        f"scores by order {figures['score_order']:.2g}, alone {figures['score_alone']:.2g}",
        f"greedy answers that change: again {figures['answers_repeat']}/{n}, in another order "
        f"{figures['answers_order']}/{n}, alone {figures['answers_alone']}/{n}"
        + (
            f"; base and adapter mixed up {figures['adapters_mixed_up']}"
            if figures["adapters_mixed_up"] is not None
            else ""
        ),
    ]


def find(key: str) -> Figures | None:
    """The figures measured on this machine under a fingerprint."""
    try:
        value = json.loads(_file(key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and "seconds" in value else None


def keep(key: str, figures: Figures) -> None:
    write_text(_file(key), json.dumps(figures, indent=1))


def key_of(spec: ModelSpec, mode: Mode) -> str:
    room = limits([spec.adapter]) if spec.adapter and spec.engine == "vllm" else None
    return fingerprint(spec, mode=mode, device=device_and_threads()[0], lora=room)


def difference(first: Sequence[TokenScores], second: Sequence[TokenScores]) -> tuple[float, float]:
    """Mean and largest absolute difference of log-probabilities; infinite where the tokens are not the same."""
    if [table.ids for table in first] != [table.ids for table in second]:
        return float("inf"), float("inf")
    found = [
        abs(a - b) for x, y in zip(first, second, strict=True) for a, b in zip(x.logprobs, y.logprobs, strict=True)
    ]
    return (fmean(found), max(found)) if found else (0.0, 0.0)


def changed(first: Sequence[Completion], second: Sequence[Completion]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def _scores(make: Any, spec: ModelSpec, mode: Mode, threads: int | None) -> tuple[list[TokenScores], float, float]:
    engine = make(spec, fingerprint="self-test", mode=mode, threads=threads)
    try:
        together = engine.score(SCORES)
        order = difference(together, engine.score(SCORES[::-1])[::-1])[1]
        alone = difference(together, [engine.score([request])[0] for request in SCORES])[1]
        return together, order, alone
    finally:
        engine.close()


def _answers(engine: Any, requests: Sequence[Request]) -> Figures:
    first = engine.generate(requests)
    return {
        "answers_repeat": changed(first, engine.generate(requests)),
        "answers_order": changed(first, engine.generate(requests[::-1])[::-1]),
        "answers_alone": changed(first, [engine.generate([request])[0] for request in requests]),
    }


def _adapters(engine: Any, adapter: str) -> int:
    """Answers of base and adapter, asked together, that are the other's.

    Not all that differ from those given alone: in half precision the batch alone can change an answer.
    """
    asked = [request for request in GREEDY for _ in range(2)]
    who = [None, adapter] * len(GREEDY)
    together = engine.generate_with(who, asked)
    alone = {(i % 2, i // 2): engine.generate_with([who[i]], [asked[i]])[0].text for i in range(len(asked))}
    return sum(
        answer.text != alone[i % 2, i // 2] and answer.text == alone[1 - i % 2, i // 2]
        for i, answer in enumerate(together)
    )


def _dtype(spec: ModelSpec, device: str) -> str:
    """What the generating engine computes in."""
    if spec.dtype != "auto":
        return spec.dtype
    if spec.engine == "vllm" and device.startswith("cpu"):
        return "bfloat16"
    from serving.model.fingerprint import resolve_model
    from serving.model.folder import read_config

    config = read_config(resolve_model(spec))
    stored = (config.get("text_config") or config).get("dtype") or config.get("torch_dtype") or "float32"
    return stored if stored in TOLERANCE else "float32"


def _file(key: str) -> Path:
    return cache_folder() / "self_tests" / f"{key}.json"
