"""The loss and the weights: accumulation, packing, padding, determinism, resumption."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from training import attention
from training.config import LoraOptions, TrainingConfig
from training.examples import Example
from training.interrupt import Interrupted, stop_on_signal
from training.rows import collate, lay_out, pack
from training.trainer import Trained, batch_loss, check_packing, keep_apart, train

FAST = {"dtype": "float32", "learning_rate": 1e-3, "epochs": 1, "gradient_accumulation": 1, "max_length": 256}


def row(length: int, seed: int = 0) -> Example:
    import random

    generator = random.Random(seed)
    return Example(
        tuple(generator.randrange(4, 300) for _ in range(length)), (False, *[n % 3 > 0 for n in range(length - 1)])
    )


def run(base: Path, rows: list[Example], folder: Path, **changes: Any) -> Trained:
    folder.mkdir(exist_ok=True)
    config = TrainingConfig(**{**FAST, **changes})
    return train(base, rows, config, name="test", folder=folder, logs=folder / "logs", pad_id=1)


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model" / "model.safetensors")


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(bool((one[name] == two[name]).all()) for name in one)


def test_accumulation_over_lengths_2_and_200_equals_one_batch_of_both(base: Path, tmp_path: Path) -> None:
    rows = [row(2, 1), row(200, 2)]
    sgd = {"arguments": {"optim": "sgd", "max_grad_norm": 0.0}, "learning_rate": 0.5, "scheduler": "constant"}
    joint = run(base, rows, tmp_path / "joint", per_device_batch_size=2, **sgd)
    split = run(base, rows, tmp_path / "split", per_device_batch_size=1, gradient_accumulation=2, **sgd)
    assert (joint.steps, split.steps) == (1, 1)
    assert split.first_loss == pytest.approx(joint.first_loss, abs=1e-5)
    one, two = weights(tmp_path / "joint"), weights(tmp_path / "split")
    assert all(float((one[name] - two[name]).abs().max()) < 1e-5 for name in one)
    assert not same(weights(tmp_path / "joint"), _initial(base))


def _initial(base: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(base / "model.safetensors")


def test_padding_changes_no_loss(base: Path) -> None:
    from training.models import trainable_model

    model = trainable_model(base, TrainingConfig(**FAST))
    short, long = row(9, 1), row(40, 2)
    apart = [batch_loss(model, [one], 1, "cpu") * one.targets for one in (short, long)]
    together = batch_loss(model, [short, long], 1, "cpu")
    assert together == pytest.approx(sum(apart) / (short.targets + long.targets), abs=1e-5)


def test_a_packed_document_does_not_see_the_one_before_it(base: Path) -> None:
    from training.models import trainable_model

    model = trainable_model(base, TrainingConfig(**FAST))
    before, sample = row(30, 1), row(20, 2)
    silent = Example(before.ids, (False,) * 30)
    (packed,) = pack([silent, sample], 64)
    assert batch_loss(model, [packed], 1, "cpu") == pytest.approx(batch_loss(model, [sample], 1, "cpu"), abs=1e-5)
    glued = Example(packed.ids, packed.learned)  # the same ids without the boundary
    assert abs(batch_loss(model, [glued], 1, "cpu") - batch_loss(model, [sample], 1, "cpu")) > 1e-4


def test_packed_rows_attend_document_by_document_as_under_a_mask(base: Path) -> None:
    """Losses and gradients are those of transformers' dense mask, for rows of several documents and with padding."""
    from training.models import trainable_model

    batch = collate(pack([row(length, length) for length in (30, 9, 20, 1, 25)], 64), 1)
    assert batch["position_ids"].shape == (2, 60)
    found = []
    for by_document in (True, False):
        model = trainable_model(base, TrainingConfig(**FAST))
        if by_document:
            assert attention.apart(model)
            assert model.config._attn_implementation == attention.NAME
        loss = model(**batch).loss
        loss.backward()
        found.append((float(loss.detach()), {name: p.grad for name, p in model.named_parameters()}))
    (one, grads), (two, others) = found
    assert one == pytest.approx(two, abs=1e-6)
    assert all(float((grads[name] - others[name]).abs().max()) < 1e-6 for name in grads)


def test_the_mask_is_kept_where_layers_do_not_attend_to_everything(base: Path) -> None:
    from training.models import trainable_model

    for name, value in (
        ("sliding_window", 8),
        ("attn_logit_softcapping", 50.0),
        ("layer_types", ["chunked_attention"]),
    ):
        model = trainable_model(base, TrainingConfig(**FAST))
        setattr(model.config, name, value)
        assert not attention.apart(model)
        assert model.config._attn_implementation == "sdpa"


def test_a_model_that_keeps_its_positions_to_itself_is_masked(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from training.models import trainable_model

    model = trainable_model(base, TrainingConfig(**FAST))
    whole = attention.by_document
    monkeypatch.setattr(attention, "by_document", lambda *a, position_ids=None, **options: whole(*a, **options))
    keep_apart(model, [row(30)], 1)
    assert model.config._attn_implementation == "sdpa"


def test_packing_is_refused_where_the_model_ignores_the_boundary(base: Path) -> None:
    from training.models import trainable_model

    model = trainable_model(base, TrainingConfig(**FAST))
    check_packing(model, [row(30)], 1)
    whole = model.forward
    model.forward = lambda **batch: whole(**{k: v for k, v in batch.items() if k != "position_ids"})
    with pytest.raises(ValueError, match="set packing: false"):
        check_packing(model, [row(30)], 1)


def test_packed_training_equals_padded_training(base: Path, tmp_path: Path) -> None:
    rows = [row(10 + n, n) for n in range(6)]
    config = TrainingConfig(**{**FAST, "packing": True})
    packed = lay_out([rows], config)
    assert len(packed) == 1
    sgd = {"arguments": {"optim": "sgd", "max_grad_norm": 0.0}, "learning_rate": 0.5}
    one = run(base, packed, tmp_path / "packed", packing=True, **sgd)
    two = run(base, rows, tmp_path / "padded", per_device_batch_size=6, **sgd)
    assert one.first_loss == pytest.approx(two.first_loss, abs=1e-5)
    first, second = weights(tmp_path / "packed"), weights(tmp_path / "padded")
    assert all(float((first[name] - second[name]).abs().max()) < 1e-5 for name in first)


def test_the_same_seed_gives_the_same_bits(base: Path, tmp_path: Path) -> None:
    rows = [row(10 + n, n) for n in range(12)]
    one = run(base, rows, tmp_path / "one", per_device_batch_size=3)
    two = run(base, rows, tmp_path / "two", per_device_batch_size=3)
    assert one == two
    assert same(weights(tmp_path / "one"), weights(tmp_path / "two"))


@pytest.mark.parametrize("changes", [{}, {"method": "lora", "lora": LoraOptions(rank=4, dropout=0.3)}])
def test_a_stopped_run_goes_on_to_the_same_bits(base: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    rows = [row(10 + n % 7, n) for n in range(60)]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    uninterrupted = run(base, rows, whole, **changes)
    parts.mkdir()
    threading.Thread(target=_signal_after_steps, args=(parts, 8), daemon=True).start()
    with stop_on_signal(parts), pytest.raises(Interrupted) as stop:
        run(base, rows, parts, save_steps=8, **changes)
    assert stop.value.code == 75
    assert not (parts / "model").exists()
    (parts / "STOP").unlink()
    resumed = run(base, rows, parts, save_steps=8, **changes)
    assert resumed == uninterrupted
    name = "adapter/adapter_model.safetensors" if changes else "model/model.safetensors"
    assert (parts / name).read_bytes() == (whole / name).read_bytes()


def _signal_after_steps(folder: Path, step: int) -> None:
    while not (folder / "checkpoints" / f"checkpoint-{step}" / "COMPLETE").exists():
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGUSR1)


def test_a_half_written_checkpoint_is_not_resumed_from(tmp_path: Path) -> None:
    from training.callbacks import last_checkpoint

    for step in (8, 16, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-8" / "COMPLETE").touch()
    (tmp_path / "checkpoint-16" / "COMPLETE").touch()
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-16"
    assert not (tmp_path / "checkpoint-100").exists()


def test_checkpoints_are_limited(base: Path, tmp_path: Path) -> None:
    run(base, [row(12, n) for n in range(10)], tmp_path / "run", save_steps=1)
    assert len(list((tmp_path / "run" / "checkpoints").glob("checkpoint-*"))) == 2


def test_other_arguments_are_passed_through(base: Path, tmp_path: Path) -> None:
    rows = [row(12, n) for n in range(3)]
    plain = run(base, rows, tmp_path / "plain")
    noisy = run(base, rows, tmp_path / "noisy", arguments={"adam_beta1": 0.5, "adam_beta2": 0.6})
    assert noisy.last_loss != plain.last_loss
    with pytest.raises(ValueError, match=r"arguments.adam_beta_1: .*did you mean 'adam_beta1'"):
        run(base, rows, tmp_path / "bad", arguments={"adam_beta_1": 0.5})
    with pytest.raises(ValueError, match=r"arguments.learning_rate: .*own keys"):
        run(base, rows, tmp_path / "bad", arguments={"learning_rate": 0.5})


def test_a_diverged_run_is_an_error(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the loss is (nan|inf) at step .*lower learning_rate"):
        run(base, [row(12, n) for n in range(30)], tmp_path / "run", learning_rate=1e30, scheduler="constant")


def test_bf16_keeps_float32_weights(base: Path, tmp_path: Path) -> None:
    rows = [row(12, n) for n in range(4)]
    low = run(base, rows, tmp_path / "low", dtype="bf16")
    high = run(base, rows, tmp_path / "high")
    assert low.first_loss == pytest.approx(high.first_loss, abs=0.05)
    assert low.first_loss != high.first_loss
    assert {str(tensor.dtype) for tensor in weights(tmp_path / "low").values()} == {"torch.float32"}


def test_gradient_checkpointing_changes_no_weight(base: Path, tmp_path: Path) -> None:
    rows = [row(12, n) for n in range(4)]
    run(base, rows, tmp_path / "plain")
    run(base, rows, tmp_path / "checkpointed", gradient_checkpointing=True)
    one, two = weights(tmp_path / "plain"), weights(tmp_path / "checkpointed")
    assert all(float((one[name] - two[name]).abs().max()) < 1e-5 for name in one)


def test_progress_is_a_line_with_loss_speed_and_time_left(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(base, [row(12, n) for n in range(4)], tmp_path / "run")
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("test: step 4/4  loss ")
    assert line.endswith("tokens/s  0:00 left")
    assert list((tmp_path / "run" / "logs" / "test").glob("events*"))


def test_an_unknown_lora_module_names_the_nearest(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no module 'q_projection': did you mean 'q_proj'"):
        run(base, [row(9)], tmp_path / "run", method="lora", lora=LoraOptions(target_modules=("q_projection",)))
