"""Saved weights that are not what was trained are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from training.config import TrainingConfig
from training.examples import Example
from training.models import check_base, load_model, store_as, stored_dtype
from training.trainer import batch_loss
from training.verify import SavedWeightsError, check_saved, check_tensors

CONFIG = TrainingConfig(dtype="float32")
ROWS = [Example(tuple(range(4, 30)), (False, *[True] * 25))]


@pytest.fixture
def copy(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "copy"))


def change(folder: Path, name: str, new: Any) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors[name] = new(tensors[name]).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (lambda tensor: tensor[:0], "tensor model.norm.weight is empty; ZeRO-3 needs stage3_gather"),
        (lambda tensor: tensor * float("nan"), "holds NaN or infinity"),
    ],
)
def test_empty_and_nan_tensors_are_refused(copy: Path, new: Any, expected: str) -> None:
    check_tensors(copy)
    change(copy, NORM, new)
    with pytest.raises(SavedWeightsError, match=expected):
        check_tensors(copy)


def test_other_weights_than_those_in_memory_are_refused(copy: Path) -> None:
    import torch

    expected = batch_loss(load_model(copy, torch.float32), ROWS, 1, "cpu")
    assert check_saved(copy, ROWS, expected, CONFIG, 1) == pytest.approx(expected, abs=1e-6)
    change(copy, "model.layers.1.mlp.up_proj.weight", lambda tensor: tensor * 1.5)
    with pytest.raises(SavedWeightsError, match="does not hold the trained model: the loss of a fixed batch is"):
        check_saved(copy, ROWS, expected, CONFIG, 1)


def test_weights_are_stored_in_the_asked_dtype(copy: Path) -> None:
    import torch

    store_as(copy, torch.bfloat16)
    assert stored_dtype(copy) == torch.bfloat16
    assert load_model(copy, "auto").dtype in (torch.bfloat16, torch.float32)  # config.json is written by the build


def test_unusable_base_models_say_what_is_wrong(copy: Path) -> None:
    check_base(copy)
    with pytest.raises(ValueError, match="does not exist"):
        check_base(copy / "none")
    (copy / "tokenizer.json").rename(copy / "tokenizer.old")
    with pytest.raises(ValueError, match="no tokenizer"):
        check_base(copy)
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pickled weights \(pytorch_model.bin\).*safetensors"):
        check_base(copy)
