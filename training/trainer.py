"""One training phase on one process: rows in, weights out.

transformers' Trainer does the work (accumulation, DDP, DeepSpeed, checkpoints); the loss is the sum over all learned
tokens of an optimiser step divided by their number, however they are spread over rows, micro-batches and processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from serving.files import naming
from serving.named import nearest
from training import attention
from training.config import TrainingConfig, deepspeed_file
from training.examples import Example
from training.interrupt import Interrupted
from training.rows import collate

PROBE_ROWS = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a phase came to.

    steps: optimiser steps; tokens, targets: of all rows, and how many of them were learned
    first_loss, last_loss: of the first and the last optimiser step (nats per learned token)
    probe_loss: loss of the fixed rows (``probe_rows``) under the final weights, in memory
    """

    steps: int
    tokens: int
    targets: int
    first_loss: float
    last_loss: float
    probe_loss: float


def train(
    start: Path, rows: Sequence[Example], config: TrainingConfig, *, name: str, folder: Path, logs: Path, pad_id: int
) -> Trained:
    """Trains from the weights in ``start`` and leaves ``folder/model`` (or ``folder/adapter``).

    Goes on from the last complete checkpoint under ``folder/checkpoints``. Interrupted if asked to stop; ValueError
    for settings that can't work; torch's own error where memory runs out.
    """
    from transformers import PrinterCallback, Trainer, TrainingArguments
    from transformers.utils import logging as transformers_logging

    from training.callbacks import Checkpoints, Progress, last_checkpoint
    from training.models import trainable_model

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    checkpoints = folder / "checkpoints"
    with _packages_named(config):
        arguments = TrainingArguments(**_arguments(config, checkpoints))
    if config.deepspeed:
        _join_deepspeed()
    _same_kernels(config.seed)
    model = trainable_model(start, config)
    if config.packing and not arguments.deepspeed:
        keep_apart(model, rows, pad_id)
    rows_per_step = config.per_device_batch_size * config.gradient_accumulation * arguments.world_size
    keeper = Checkpoints(checkpoints, folder)
    with _packages_named(config):
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=_Rows(rows),
            data_collator=functools.partial(collate, pad_id=pad_id),
            callbacks=[
                keeper,
                Progress(name, [len(row.ids) for row in rows], rows_per_step),
                *_tensorboard(logs, name),
            ],
        )
    trainer.remove_callback(PrinterCallback)
    resume = last_checkpoint(checkpoints) if checkpoints.is_dir() else None
    with _packages_named(config), naming(checkpoints):
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    if keeper.stopped:
        raise Interrupted(
            f"{name}: stopped at step {trainer.state.global_step}, checkpoint written; run again to go on"
        )
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    result = Trained(
        steps=trainer.state.global_step,
        tokens=sum(len(row.ids) for row in rows),
        targets=sum(row.targets for row in rows),
        first_loss=losses[0],
        last_loss=losses[-1],
        probe_loss=batch_loss(trainer.model_wrapped, probe_rows(rows), pad_id, arguments.device),
    )
    target = folder / ("model" if config.method == "full" else "adapter")
    with naming(target):
        trainer.save_model(str(target))
    if trainer.is_world_process_zero():
        (target / "training_args.bin").unlink(missing_ok=True)  # a pickle that nothing reads
    return result


def probe_rows(rows: Sequence[Example]) -> list[Example]:
    """The fixed batch whose loss is compared before and after saving."""
    return list(rows[:PROBE_ROWS])


def batch_loss(model: Any, rows: Sequence[Example], pad_id: int, device: Any) -> float:
    """Mean loss per learned token of one batch, in evaluation mode (nats)."""
    import torch

    batch = {key: value.to(device) for key, value in collate(rows, pad_id).items()}
    was_training = model.training
    model.eval()
    with torch.no_grad():
        loss = float(model(**batch).loss)
    model.train(was_training)
    return loss


def keep_apart(model: Any, rows: Sequence[Example], pad_id: int) -> None:
    """Sets up the model for packed rows, the quickest way that keeps documents apart. ValueError if none does."""
    if attention.apart(model):
        try:
            return check_packing(model, rows, pad_id)
        except ValueError:  # the model does not hand its positions down
            attention.together(model)
    return check_packing(model, rows, pad_id)


def check_packing(model: Any, rows: Sequence[Example], pad_id: int) -> None:
    """Proves on the model itself that a packed document does not see the one before it. ValueError if it does.

    Two short documents, the second alone and packed behind the first, must have the same logits there.
    """
    import torch

    ids = [token for row in rows[:8] for token in row.ids][:48]
    half = max(2, len(ids) // 2)
    first, second = ids[:half], ids[half:] or ids[:half]
    alone = collate([Example(tuple(second), (True,) * len(second))], pad_id)
    joint = collate([Example((*first, *second), (True,) * (half + len(second)), (0, half))] * 2, pad_id)
    was_training = model.training
    model.eval()
    with torch.no_grad():
        expected = model(input_ids=alone["input_ids"].to(model.device)).logits[0].float()
        packed = {key: value.to(model.device) for key, value in joint.items() if key != "labels"}
        found = model(**packed).logits[1, half:].float()
    model.train(was_training)
    difference = float((found - expected).abs().max())
    scale = max(1.0, float(expected.abs().max()))
    if difference > (1e-3 if model.dtype == torch.float32 else 5e-2) * scale:
        raise ValueError(
            f"packing: in this model a document sees the one before it (logits differ by {difference:.3g}); "
            "set packing: false"
        )


class _Rows:
    """The rows as a dataset; their order is the training order."""

    def __init__(self, rows: Sequence[Example]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        return self.rows[index]


def _arguments(config: TrainingConfig, checkpoints: Path) -> dict[str, Any]:
    """Keyword arguments of TrainingArguments. ValueError for a pass-through name that does not exist or is ours."""
    import torch
    from transformers import TrainingArguments

    ours: dict[str, Any] = {
        "output_dir": str(checkpoints),
        "num_train_epochs": 1,  # the rows hold all epochs already
        "per_device_train_batch_size": config.per_device_batch_size,
        "gradient_accumulation_steps": config.gradient_accumulation,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": config.scheduler,
        "warmup_steps": config.warmup,
        "weight_decay": config.weight_decay,
        "seed": config.seed,
        "bf16": config.dtype == "bf16",
        "use_cpu": not torch.cuda.is_available(),
        "train_sampling_strategy": "sequential",
        "gradient_checkpointing": config.gradient_checkpointing,
        "save_strategy": "steps" if config.save_steps else "no",
        "save_total_limit": config.save_total_limit,
        "deepspeed": str(deepspeed_file(config.deepspeed)) if config.deepspeed else None,
        "remove_unused_columns": False,
        "report_to": "none",
        "disable_tqdm": True,
        "logging_nan_inf_filter": False,
    }
    if config.save_steps:
        ours["save_steps"] = config.save_steps
    if config.gradient_checkpointing:
        ours["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    open_to_change: dict[str, Any] = {
        "logging_steps": 1,
        "optim": "adamw_torch_fused" if torch.cuda.is_available() else "adamw_torch",
        "dataloader_pin_memory": torch.cuda.is_available(),
        "ddp_find_unused_parameters": False,
    }
    known = [field.name for field in dataclasses.fields(TrainingArguments)]
    for name in config.arguments:
        if name in ours:
            raise ValueError(f"arguments.{name}: this is set by TrainingConfig's own keys; use those")
        if name not in known:
            raise ValueError(f"arguments.{name}: TrainingArguments has no such argument; {nearest(name, known)}")
    return {**open_to_change, **ours, **config.arguments}


@contextlib.contextmanager
def _packages_named(config: TrainingConfig) -> Iterator[None]:
    """ValueError, in one line, where ``arguments`` ask for a package that is not installed (Liger's kernels, GaLore's
    or bitsandbytes' optimizers): transformers imports it when it is used, and only then says so."""
    try:
        yield
    except ImportError as error:
        if not config.arguments:
            raise
        asked = ", ".join(f"{name}: {value}" for name, value in config.arguments.items())
        reason = " ".join(str(error).split())
        raise ValueError(f"arguments ({asked}) need a package that is missing: {reason}; or leave them out") from error


def _same_kernels(seed: int) -> None:
    """Same seed, same bits: seeds every generator and asks cuDNN for its deterministic kernels."""
    import torch
    from transformers import set_seed

    set_seed(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def _join_deepspeed() -> None:
    """Makes DeepSpeed's communication known before the model is loaded: ZeRO-3 partitions it then already.

    ValueError if the package is missing. (On a CPU accelerate leaves this undone.)
    """
    try:
        import deepspeed
    except ImportError:
        raise ValueError("deepspeed is set but not installed: pip install 'proctor[gpu]' (or 'proctor[cpu]')") from None
    import torch

    deepspeed.init_distributed(dist_backend="nccl" if torch.cuda.is_available() else "gloo", auto_mpi_discovery=False)


def _tensorboard(logs: Path, name: str) -> list[Any]:
    """The TensorBoard callback of the first process, writing to ``logs/<phase>``."""
    if int(os.environ.get("RANK", "0")) != 0:
        return []
    from torch.utils.tensorboard import SummaryWriter
    from transformers.integrations import TensorBoardCallback

    return [TensorBoardCallback(SummaryWriter(log_dir=str(logs / name)))]
