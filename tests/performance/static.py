"""How fast is the static exam? Cloze mode against lm-evaluation-harness, same items, model and precision, one run.

Ours computes each distinct token once (prefix trees); lm-evaluation-harness (its ``hf`` model) computes every option
with its whole prompt. Both are timed without loading the model. The figures of both are compared as well.

    python -m tests.performance.static [--model DIR] [--test ARC.jsonl --train ARC.jsonl] [--zero-shot 200]
                                       [--five-shot 40] [--batch-size 8]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from proctor.offline import go_offline

go_offline()

import torch  # noqa: E402

from evaluation import benchmarks  # noqa: E402
from evaluation.benchmarks.splits import exemplars_for  # noqa: E402
from evaluation.items import Item  # noqa: E402
from evaluation.static import Static, StaticOptions  # noqa: E402
from serving.engines.transformers_engine import TransformersBackend  # noqa: E402
from serving.ledger import Ledger  # noqa: E402
from serving.model.fingerprint import resolve_model  # noqa: E402
from serving.model.spec import ModelSpec  # noqa: E402
from serving.role_engines import Cast  # noqa: E402
from serving.scheduler import run_dialogues  # noqa: E402
from tests.fixtures.harness import harness_model, run_harness  # noqa: E402


class InProcess(TransformersBackend):
    """The engine without a process of its own: loading is not part of the time."""

    fingerprint = "in-process"

    def close(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--test", type=Path, help="ARC file (the embedded exam if left out)")
    parser.add_argument("--train", type=Path, help="ARC file of exemplars")
    parser.add_argument("--zero-shot", type=int, default=200, help="items at 0-shot")
    parser.add_argument("--five-shot", type=int, default=40, help="items at 5-shot")
    parser.add_argument("--batch-size", type=int, default=8, help="of lm-evaluation-harness")
    arguments = parser.parse_args()

    kind = "arc" if arguments.test else "embedded"
    items = benchmarks.load(kind, arguments.test, duplicates="report")
    pool = benchmarks.load(kind, arguments.train, split=None if arguments.train else "dev", duplicates="report")
    spec = ModelSpec(path=arguments.model, engine="transformers", dtype="float32")
    engine = InProcess(spec)
    harness = harness_model(resolve_model(spec), arguments.batch_size)
    print(f"{arguments.model}, fp32, {torch.get_num_threads()} threads; harness batch size {arguments.batch_size}")
    for shots, count, wanted in ((0, arguments.zero_shot, 2.2), (5, arguments.five_shot, 8.0)):
        compare(items[:count], pool, shots, spec, engine, harness, wanted)


def compare(
    items: Sequence[Item],
    pool: Sequence[Item],
    shots: int,
    spec: ModelSpec,
    engine: InProcess,
    harness: object,
    wanted: float,
) -> None:
    protocol = Static(StaticOptions(mode="cloze", shots=shots), seed=0, exemplars=pool)
    start = time.perf_counter()
    with Cast({"candidate": spec}, ledger=Ledger(None), mode="lockstep", make_engine=lambda *_, **__: engine) as cast:
        records = run_dialogues(protocol.dialogues(items), cast, wave=len(items))
    ours = time.perf_counter() - start
    usage = cast.usage["candidate"]
    figures = protocol.summarise(records)

    exemplars = exemplars_for(items[0], pool, shots, 0)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        theirs = run_harness(harness, items, exemplars, Path(folder))
        seconds = time.perf_counter() - start
    difference = max(
        abs(a - b)
        for record, row in zip(records, theirs.log_likelihoods, strict=True)
        for a, b in zip(record["log_likelihoods"], row, strict=True)
    )
    print(f"{shots}-shot, {len(items)} items")
    print(f"  ours    {ours:8.2f} s  acc {figures['accuracy']:.4f}  acc_norm {figures['acc_norm']:.4f}")
    print(f"  harness {seconds:8.2f} s  acc {theirs.acc:.4f}  acc_norm {theirs.acc_norm:.4f}")
    print(f"  greatest difference of {sum(map(len, theirs.log_likelihoods))} log-likelihoods: {difference:.1e}")
    print(
        f"  tokens: asked {usage.prompt_tokens}, computed {usage.computed_tokens} "
        f"({usage.prompt_tokens / usage.computed_tokens:.2f} times fewer)"
    )
    print(f"  ours is {seconds / ours:.2f} times as fast (wanted: at least {wanted})", flush=True)


if __name__ == "__main__":
    main()
