"""How fast are dialogues? KIEval with one model in all roles: the scheduler against one dialogue at a time, one run.

lockstep   waves: all dialogues take each step together
fast       the engine takes whatever waits for it
one by one the same scheduler with a wave of one dialogue: what a loop over items does. It comes last, so that what the
           engine keeps of earlier prompts (its prefix cache) helps it most.

Then the replay: a finished run of 3,000 calls from its ledger, with engines that refuse to start.

    python -m tests.performance.dialogues [--model DIR] [--engine vllm] [--items 32] [--rounds 1]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.offline import go_offline

go_offline()

from evaluation import benchmarks  # noqa: E402
from evaluation import registry as protocols  # noqa: E402
from evaluation.items import Item  # noqa: E402
from serving.engines.process import ProcessEngine  # noqa: E402
from serving.ledger import Ledger  # noqa: E402
from serving.model.spec import ModelSpec  # noqa: E402
from serving.records import Completion, Request, Sampling, ScoreRequest, TokenScores  # noqa: E402
from serving.role_engines import Cast, Mode  # noqa: E402
from serving.scheduler import run_dialogues  # noqa: E402

ROLES = ("candidate", "interactor", "evaluator")


class Watched:
    """An engine that stays open from run to run and notes when it was busy."""

    def __init__(self, spec: ModelSpec, mode: Mode) -> None:
        self.engine = ProcessEngine(spec, fingerprint="watched", mode=mode)
        self.fingerprint = "watched"
        self.busy: list[tuple[float, float]] = []

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        start = time.perf_counter()
        answers = self.engine.generate(requests)
        self.busy.append((start, time.perf_counter()))
        return answers

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        raise AssertionError("KIEval scores nothing")

    def close(self) -> None:
        pass

    def idle(self) -> float:
        """Share of the time from the first batch's start to the last one's end in which no batch was computed."""
        whole = self.busy[-1][1] - self.busy[0][0]
        return 1 - sum(end - start for start, end in self.busy) / whole


class Refuses:
    """Stands where an engine would be started in a replay."""

    def __init__(self, spec: ModelSpec, *, fingerprint: str, **_: Any) -> None:
        self.fingerprint = fingerprint

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        raise AssertionError("a replay asked the engine")

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        raise AssertionError("a replay asked the engine")

    def close(self) -> None:
        pass


class Answers(Refuses):
    """Fills a ledger at once; the texts have the length of a real model's."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        text = "Gravity pulls the water towards the moon, and the turning earth meets the bulge twice a day. " * 5
        return [Completion(text=text, finish_reason="stop", prompt_tokens=400, output_tokens=100) for _ in requests]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--engine", default="vllm", choices=("vllm", "transformers"))
    parser.add_argument("--items", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    spec = ModelSpec(path=arguments.model, engine=arguments.engine, dtype="bfloat16", max_length=2048, max_num_seqs=64)
    items = benchmarks.load("embedded", limit=arguments.items)
    speed(spec, items, arguments.rounds)
    replay(spec)


def interviews(rounds: int) -> Any:
    options = {
        "rounds": rounds,
        "comment_length": 8,
        "interactor_tokens": 32,
        "candidate_tokens": 48,
        "retries": 0,
        "early_stop": False,
    }
    return protocols.build("kieval", options, seed=0)


def speed(spec: ModelSpec, items: Sequence[Item], rounds: int) -> None:
    protocol = interviews(rounds)
    print(f"{len(items)} dialogues of {rounds} round(s), {spec.path} through {spec.engine}", flush=True)
    engine = Watched(spec, "lockstep")
    engine.engine.generate([Request(prompt="Hello", sampling=Sampling(max_tokens=2))])  # load it
    runs: list[tuple[str, Mode, int]] = [
        ("lockstep", "lockstep", len(items)),
        ("fast", "fast", len(items)),
        ("one by one", "lockstep", 1),
    ]
    seconds = {}
    for name, mode, wave in runs:
        engine.busy.clear()
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder))
            with Cast(
                dict.fromkeys(ROLES, spec), ledger=ledger, mode=mode, make_engine=lambda *_, **__: engine
            ) as cast:
                run_dialogues(protocol.dialogues(items), cast, wave=wave)
            ledger.close()
        seconds[name] = time.perf_counter() - start
        tokens = sum(usage.output_tokens for usage in cast.usage.values())
        print(
            f"  {name:10} {seconds[name]:7.1f} s  {60 * len(items) / seconds[name]:6.1f} dialogues/min  "
            f"{tokens / seconds[name]:6.0f} tokens/s  {len(engine.busy)} batches, engine idle {engine.idle():.1%}",
            flush=True,
        )
    engine.engine.close()
    for name in ("lockstep", "fast"):
        print(f"  {name} is {seconds['one by one'] / seconds[name]:.2f} times as fast (wanted: at least 5)")
    print("  (wanted: engine idle under 5% in lockstep and fast)", flush=True)


def replay(spec: ModelSpec, calls: int = 3000) -> None:
    """200 items x (1 answer + 5 rounds of question, reply, verdict) are 3,200 calls; 188 items give 3,008."""
    items = benchmarks.load("embedded")[: -(-calls // 16)]
    options = {"rounds": 5, "verdict": "free", "retries": 0, "early_stop": False}
    protocol = protocols.build("kieval", options, seed=0)
    models = dict.fromkeys(ROLES, spec)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        with Cast(models, ledger=ledger, mode="lockstep", make_engine=Answers) as cast:
            first = run_dialogues(protocol.dialogues(items), cast, wave=64)
        ledger.close()
        start = time.perf_counter()
        ledger = Ledger(Path(folder))
        with Cast(models, ledger=ledger, mode="lockstep", make_engine=Refuses) as cast:
            again = run_dialogues(protocol.dialogues(items), cast, wave=64)
        seconds = time.perf_counter() - start
    assert first == again
    replayed = sum(usage.calls for usage in cast.usage.values())
    print(f"replay of {replayed} calls: {seconds:.2f} s, no engine and no tokenizer started (wanted: under 3 s)")


if __name__ == "__main__":
    main()
