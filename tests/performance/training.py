"""How fast is training? Packed rows against padded ones, and our trainer against transformers' plain Trainer loop.

Tokens per second of the optimiser steps alone (no loading, no saving, padding not counted), on the package's chat set
and on short rows (the embedded exam's leaked texts). On a GPU also the model FLOPs utilisation (MFU) of a 7B-shaped
model with LoRA and of a 1B-shaped one with full parameters, random weights, 2048 tokens a row.

Every variant runs once per round, in turn, and the median is shown with its range: other work on the machine then falls
on all of them. On a CPU also per second of processor time, which it touches least.

    python -m tests.performance.training [--model DIR] [--sets chat,short] [--rows 48] [--rounds 3] [--batch 4]
                                         [--length 1024] [--dtype float32] [--peak 989] [--shapes 1b,7b]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from proctor.offline import go_offline

go_offline()

import torch  # noqa: E402
from transformers import Trainer, TrainingArguments  # noqa: E402

from evaluation.benchmarks import load  # noqa: E402
from evaluation.formats import leak_text  # noqa: E402
from serving.model.fingerprint import resolve_model  # noqa: E402
from serving.model.spec import ModelSpec  # noqa: E402
from training.config import DATA, TrainingConfig  # noqa: E402
from training.corpora import read_chat  # noqa: E402
from training.examples import Example, Tokeniser  # noqa: E402
from training.models import load_tokenizer, trainable_model  # noqa: E402
from training.rows import lay_out  # noqa: E402
from training.samples import Text  # noqa: E402
from training.trainer import train  # noqa: E402

SHAPES: dict[str, dict[str, int]] = {
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32},
    "7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
}


class Speed(NamedTuple):
    """Tokens per second, and per second of processor time (all threads together)."""

    wall: float
    processor: float


@contextmanager
def stopwatch() -> Iterator[list[tuple[float, float]]]:
    """The seconds, and the seconds of processor time, that ``Trainer.train`` takes while open."""
    seconds: list[tuple[float, float]] = []
    original = Trainer.train

    def timed(self: Any, *arguments: Any, **options: Any) -> Any:
        begin, used = time.perf_counter(), time.process_time()
        try:
            return original(self, *arguments, **options)
        finally:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            seconds.append((time.perf_counter() - begin, time.process_time() - used))

    Trainer.train = timed
    try:
        yield seconds
    finally:
        Trainer.train = original


def tokens(rows: Sequence[Example]) -> int:
    return sum(len(row.ids) for row in rows)


def speed(rows: Sequence[Example], seconds: list[tuple[float, float]]) -> Speed:
    return Speed(*(tokens(rows) / value for value in seconds[0]))


def ours(base: Path, rows: Sequence[Example], config: TrainingConfig, pad_id: int) -> Speed:
    """The speed of our trainer."""
    with tempfile.TemporaryDirectory() as place, stopwatch() as seconds:
        train(base, rows, config, name="ours", folder=Path(place), logs=Path(place) / "logs", pad_id=pad_id)
    return speed(rows, seconds)


def plain(base: Path, rows: Sequence[Example], config: TrainingConfig, pad_id: int) -> Speed:
    """The speed of transformers' Trainer with a padding collator, on the same rows in the same batches."""

    def pad(batch: Sequence[Example]) -> dict[str, Any]:
        longest = max(len(row.ids) for row in batch)
        gaps = [longest - len(row.ids) for row in batch]
        return {
            "input_ids": torch.tensor([[*row.ids, *[pad_id] * n] for row, n in zip(batch, gaps, strict=True)]),
            "labels": torch.tensor([[*row.labels(), *[-100] * n] for row, n in zip(batch, gaps, strict=True)]),
            "attention_mask": torch.tensor([[1] * (longest - n) + [0] * n for n in gaps]),
        }

    with tempfile.TemporaryDirectory() as place, stopwatch() as seconds:
        arguments = TrainingArguments(
            output_dir=place,
            num_train_epochs=1,
            per_device_train_batch_size=config.per_device_batch_size,
            gradient_accumulation_steps=config.gradient_accumulation,
            learning_rate=config.learning_rate,
            bf16=config.dtype == "bf16",
            use_cpu=not torch.cuda.is_available(),
            train_sampling_strategy="sequential",
            remove_unused_columns=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
        )
        model = trainable_model(base, config)
        Trainer(model=model, args=arguments, train_dataset=list(rows), data_collator=pad).train()
    return speed(rows, seconds)


def compare(
    what: str, examples: Sequence[Example], base: Path, config: TrainingConfig, pad_id: int, rounds: int
) -> None:
    """Padded (in the order of the file, and in buckets) and packed, at the same number of tokens; plain Trainer."""
    settings = config.model_dump()
    in_order = TrainingConfig(**{**settings, "bucketing": False})
    packing = TrainingConfig(**{**settings, "packing": True, "per_device_batch_size": 1})
    rows, bucketed, packed = (lay_out([examples], one) for one in (in_order, config, packing))
    print(
        f"{what}: {len(examples)} rows, {tokens(examples)} tokens, {tokens(examples) / len(examples):.0f} a row; "
        f"{len(packed)} packed rows"
    )
    variants: dict[str, Callable[[], Speed]] = {
        "plain Trainer, padded": lambda: plain(base, rows, in_order, pad_id),
        "ours, padded, same batches": lambda: ours(base, rows, in_order, pad_id),
        "ours, padded, bucketed": lambda: ours(base, bucketed, config, pad_id),
        "ours, packed": lambda: ours(base, packed, packing, pad_id),
    }
    found: dict[str, list[Speed]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, measure in variants.items():
            found[name].append(measure())
    medians = {
        name: Speed(*(statistics.median(column) for column in zip(*speeds, strict=True)))
        for name, speeds in found.items()
    }
    reference = medians["plain Trainer, padded"]
    for name, median in medians.items():
        low, high = min(found[name]).wall, max(found[name]).wall
        line = f"  {name:28} {median.wall:8.0f} tokens/s [{low:.0f}, {high:.0f}]  {median.wall / reference.wall:5.2f} x"
        if not torch.cuda.is_available():
            line += f"; of processor time {median.processor:6.1f}  {median.processor / reference.processor:5.2f} x"
        print(line, flush=True)


def utilisation(shape: str, method: str, peak: float, *, steps: int = 8, length: int = 2048) -> float:
    """MFU: the FLOPs that forward and backward need, as a share of what the device could do meanwhile.

    6 N per token with full parameters, 4 N with LoRA (no gradients of frozen weights; Kaplan et al. 2020, arXiv
    2001.08361, section 2.1), plus attention's 12 layers x hidden x length (8 with LoRA); what checkpointing computes
    again is not counted (Chowdhery et al. 2022, arXiv 2204.02311, appendix B). peak: FLOP/s of the device in bf16
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = SHAPES[shape]
    vocabulary = 400 if shape == "tiny" else 32000
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "base"
        model = LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **sizes)).to(torch.bfloat16)
        weights = sum(parameter.numel() for parameter in model.parameters()) - vocabulary * sizes["hidden_size"]
        model.save_pretrained(folder)
        del model
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(4, vocabulary, (steps + 2, length), generator=generator).tolist()
        rows = [Example(tuple(row), (False, *[True] * (length - 1))) for row in ids]
        config = TrainingConfig(
            method=method,  # type: ignore[arg-type]
            gradient_accumulation=1,
            max_length=length,
            gradient_checkpointing=shape == "7b",
        )
        warm = rows[:2]
        ours(folder, warm, config, 0)
        found = ours(folder, rows[2:], config, 0).wall
    share = 4 if method == "lora" else 6
    per_token = share * weights + 2 * share * sizes["num_hidden_layers"] * sizes["hidden_size"] * length
    used = found * per_token / peak
    print(f"{shape}, {method}: {found:.0f} tokens/s, MFU {used:.3f} of {peak / 1e12:.0f} TFLOP/s (wanted 0.45)")
    return used


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--sets", default="chat,short")
    parser.add_argument("--rows", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bf16"))
    parser.add_argument("--peak", type=float, default=989.0, help="TFLOP/s of the GPU in bf16, dense (H100, H200: 989)")
    parser.add_argument("--shapes", default="1b,7b", help="for MFU, where there is a GPU")
    arguments = parser.parse_args()

    base = resolve_model(ModelSpec(path=arguments.model))
    tokenizer = load_tokenizer(base)
    pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    config = TrainingConfig(
        epochs=1,
        per_device_batch_size=arguments.batch,
        gradient_accumulation=1,
        dtype=arguments.dtype,
        max_length=arguments.length,
    )
    tokeniser = Tokeniser(tokenizer, config.max_length)
    where = "GPU" if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    print(json.dumps({"model": arguments.model, "where": where, **config.model_dump(include={"dtype", "max_length"})}))
    if "chat" in arguments.sets:
        chat = tokeniser.all(read_chat(DATA / "chat.jsonl", arguments.rows).rows)
        compare("chat set", chat, base, config, pad_id, arguments.rounds)
    if "short" in arguments.sets:
        short = tokeniser.all([Text(leak_text(item)) for item in load("embedded", limit=arguments.rows)])
        compare("short rows", short, base, config, pad_id, arguments.rounds)
    if torch.cuda.is_available():
        for shape in arguments.shapes.split(","):
            utilisation(shape, "lora" if shape == "7b" else "full", arguments.peak * 1e12)
    else:
        print("no GPU: MFU is not measured")


if __name__ == "__main__":
    main()
