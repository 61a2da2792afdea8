"""Saved weights are read back before anything relies on them.

ZeRO-3 without gathering writes tensors of size zero, a diverged run writes NaN, and a wrong key leaves a layer at its
initial values: all three load without an error. So every tensor is looked at, and the loss of a fixed batch must be
what it was in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving.model.fingerprint import check_model_folder
from training.config import TrainingConfig
from training.examples import Example
from training.models import frozen_base, load_model, stored_dtype, with_adapter
from training.trainer import batch_loss

TOLERANCE = {"float32": 1e-4, "bf16": 2e-2}
"""Largest difference in loss, relative above 1 nat and absolute below: rounding, not a lost tensor."""

MERGE_TOLERANCE = 1e-2
"""Largest difference of a token's log-probability (nats) between adapter-on-base and the merged weights, float32."""


class SavedWeightsError(RuntimeError):
    """What was written is not what was trained. The folder must not be used."""


def check_tensors(folder: Path) -> None:
    """SavedWeightsError if a tensor of the folder is empty, or holds NaN or infinity."""
    import torch
    from safetensors import safe_open

    for path in check_model_folder(folder):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                tensor = file.get_tensor(name)
                if tensor.numel() == 0:
                    raise SavedWeightsError(
                        f"{path.name}: tensor {name} is empty; ZeRO-3 needs stage3_gather_16bit_weights_on_model_save"
                    )
                if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                    raise SavedWeightsError(f"{path.name}: tensor {name} holds NaN or infinity; lower learning_rate")


def check_saved(folder: Path, rows: Sequence[Example], expected: float, config: TrainingConfig, pad_id: int) -> float:
    """The loss of ``rows`` under the weights in ``folder``. SavedWeightsError if it is not ``expected`` (nats)."""
    check_tensors(folder)
    found = reloaded_loss(load_model(folder, stored_dtype(folder)), rows, config, pad_id)
    compare(found, expected, config, folder)
    return found


def compare(found: float, expected: float, config: TrainingConfig, folder: Path) -> None:
    allowed = TOLERANCE[config.dtype] * max(1.0, abs(expected))
    if not abs(found - expected) <= allowed:
        raise SavedWeightsError(
            f"{folder} does not hold the trained model: the loss of a fixed batch is {found:.6f} after loading and was "
            f"{expected:.6f} in memory (allowed difference {allowed:.6f})"
        )


def reloaded_loss(model: Any, rows: Sequence[Example], config: TrainingConfig, pad_id: int) -> float:
    """Loss of one batch, on the GPU where there is one, computed in the precision it was trained in."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=config.dtype == "bf16"):
        return batch_loss(model, rows, pad_id, device)


def merge(
    start: Path, adapter: Path, out: Path, rows: Sequence[Example], expected: float, config: TrainingConfig, pad_id: int
) -> tuple[float, float]:
    """Merges a LoRA adapter into its base, in float32, and saves the whole model to ``out``.

    Returns the adapter's loss after loading (compared with ``expected``) and the largest difference of a token's
    log-probability between adapter-on-base and merged. SavedWeightsError if either is off.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    model = with_adapter(frozen_base(start, config), config)
    weights = load_file(adapter / "adapter_model.safetensors")
    if any(tensor.numel() == 0 for tensor in weights.values()):
        raise SavedWeightsError(f"{adapter} holds an empty tensor; with ZeRO-3 the adapter must be gathered when saved")
    set_peft_model_state_dict(model, weights)
    loss = reloaded_loss(model, rows, config, pad_id)
    compare(loss, expected, config, adapter)
    model.to("cpu")
    before = log_probabilities(model, rows, pad_id)
    merged = model.merge_and_unload()
    difference = max(
        float((one - two).abs().max()) for one, two in zip(before, log_probabilities(merged, rows, pad_id), strict=True)
    )
    if not difference <= MERGE_TOLERANCE:
        raise SavedWeightsError(
            f"merging the adapter changes log-probabilities by up to {difference:.3g} nats (at most {MERGE_TOLERANCE})"
        )
    merged.save_pretrained(out)
    check_tensors(out)
    return loss, difference


def log_probabilities(model: Any, rows: Sequence[Example], pad_id: int) -> list[Any]:
    """Per row, the log-probability of every token given those before it (nats)."""
    import torch

    from training.rows import collate

    model.eval()
    found = []
    with torch.no_grad():
        for row in rows:
            batch = collate([row], pad_id)
            del batch["labels"]
            logits = model(**batch).logits[0, :-1].float()
            ids = batch["input_ids"][0, 1:]
            found.append(torch.log_softmax(logits, dim=-1).gather(-1, ids[:, None])[:, 0])
    return found
