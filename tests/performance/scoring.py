"""How fast is the token table? Three ways on the same texts and model, in one run.

table   our scoring: length buckets, the head over chunks of rows, mean, deviation and rank over the full vocabulary
bare    the same buckets, one forward pass with its language-model head, and nothing else
loop    one text at a time, the model's own loss, then softmax and log-softmax over the whole vocabulary: the steps of
        the public Min-K%++ code

Then the peak memory of 200 and of 2,000 texts, each in its own process, with a small random model that has SmolLM2's
vocabulary: what a table takes besides the model. The results themselves (counted apart) grow with the texts.

    python -m tests.performance.scoring [MODEL] [TEXTS]
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import fields, is_dataclass
from pathlib import Path

from proctor.offline import go_offline

go_offline()

import torch  # noqa: E402

from evaluation import benchmarks  # noqa: E402
from evaluation.formats import leak_text  # noqa: E402
from serving.engines.transformers_engine import TransformersBackend  # noqa: E402
from serving.model.spec import ModelSpec  # noqa: E402
from serving.records import ScoreRequest  # noqa: E402
from serving.rendering import render  # noqa: E402
from serving.scoring.token_table import Row, buckets  # noqa: E402


def texts(count: int) -> list[str]:
    """Texts of mixed length: one to four exam items joined."""
    items = [leak_text(item) for item in benchmarks.load("embedded")]
    rng = random.Random(0)
    return ["\n\n".join(rng.choices(items, k=rng.randint(1, 4))) for _ in range(count)]


def main() -> None:
    if sys.argv[1:2] == ["--peak"]:
        print(peak(sys.argv[2], int(sys.argv[3])))
        return
    model = sys.argv[1] if len(sys.argv) > 1 else "embedded"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    spec = ModelSpec(path=model, engine="transformers", dtype="float32", score_batch_tokens=512)
    backend = TransformersBackend(spec)
    samples = texts(count)
    ids = [render(backend.tokenizer, text) for text in samples]
    tokens = sum(map(len, ids))
    backend.score([ScoreRequest(prompt=samples[0], moments=True)])  # warm
    seconds = {
        "table": timed(lambda: backend.score([ScoreRequest(prompt=text, moments=True) for text in samples])),
        "bare": timed(lambda: bare(backend, ids, spec.score_batch_tokens)),
        "loop": timed(lambda: loop(backend, ids)),
    }
    print(f"{count} texts, {tokens} tokens, {model}, {torch.get_num_threads()} threads")
    for name, value in seconds.items():
        print(f"  {name:6} {value:7.2f} s  {tokens / value:8.0f} tokens/s")
    print(f"  table is {seconds['loop'] / seconds['table']:.2f} times as fast as the loop (wanted: at least 2)")
    print(f"  table takes {seconds['table'] / seconds['bare']:.2f} times the bare pass (wanted: at most 1.2)")
    memory()


def memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small_model(Path(folder))
        found = {}
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}  # -m alone finds no tests in safe-path mode
        for count in (200, 2000):
            command = [sys.executable, "-m", "tests.performance.scoring", "--peak", folder, str(count)]
            said = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=env).stdout
            found[count] = [float(value) for value in said.splitlines()[-1].split()]  # libraries may talk before
    for count, (mib, results) in found.items():
        print(
            f"  {count:5} texts: {mib:6.0f} MiB above the loaded model at the peak; the results' size {results:.0f} MiB"
        )
    beside = {count: mib - results for count, (mib, results) in found.items()}
    ratio = beside[2000] / beside[200]
    print(f"  beside the results, 10 times the texts take {ratio:.2f} times the memory (wanted: flat)")


def small_model(folder: Path) -> None:
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from serving.model.fingerprint import resolve_model

    tokenizer = AutoTokenizer.from_pretrained(resolve_model(ModelSpec(path="embedded")))
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def peak(folder: str, count: int) -> str:
    """MiB of the process above what it took before the first text, and MiB of the results themselves."""
    spec = ModelSpec(path=folder, engine="transformers", dtype="float32", score_batch_tokens=512)
    backend = TransformersBackend(spec)
    samples = texts(count)
    backend.score([ScoreRequest(prompt=max(samples, key=len), moments=True)])  # warm: allocator and libraries
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = backend.score([ScoreRequest(prompt=text, moments=True) for text in samples])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"{(after - before) / 1024} {sum(map(weight, results)) / 2**20}"


def weight(value: object) -> int:
    """Bytes of a result and of all it holds, a shared small number counted each time."""
    held = [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else value
    inner = sum(map(weight, held)) if isinstance(held, list | tuple) else 0
    return sys.getsizeof(value) + inner


def timed(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start


def bare(backend: TransformersBackend, ids: list[tuple[int, ...]], bucket_tokens: int) -> None:
    with torch.inference_mode():
        for bucket in buckets([Row(row) for row in ids], bucket_tokens):
            width = max(len(row.ids) for row in bucket)
            batch = torch.zeros((len(bucket), width), dtype=torch.long)
            mask = torch.zeros_like(batch)
            for b, row in enumerate(bucket):
                batch[b, : len(row.ids)] = torch.tensor(row.ids)
                mask[b, : len(row.ids)] = 1
            backend.model(input_ids=batch, attention_mask=mask, use_cache=False)


def loop(backend: TransformersBackend, ids: list[tuple[int, ...]]) -> None:
    with torch.inference_mode():
        for row in ids:
            batch = torch.tensor([row])
            output = backend.model(input_ids=batch, labels=batch)
            logits = output.logits[0, :-1]
            probs = torch.softmax(logits, dim=-1)
            logp = torch.log_softmax(logits, dim=-1)
            logp.gather(1, batch[0, 1:, None])
            mean = (probs * logp).sum(-1)
            ((probs * logp.square()).sum(-1) - mean.square()).sqrt()


if __name__ == "__main__":
    main()
