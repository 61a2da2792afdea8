"""Settings: the paper's defaults, and errors that name what would be right."""

from __future__ import annotations

import subprocess
import sys

import pytest

from training.config import LoraOptions, TrainingConfig, TrainingJob, deepspeed_file


def test_defaults_are_the_papers() -> None:
    config = TrainingConfig()
    assert (config.learning_rate, config.scheduler, config.epochs) == (2e-5, "cosine", 4)
    assert (config.per_device_batch_size, config.gradient_accumulation, config.max_length) == (1, 4, 2048)
    assert (config.dtype, config.method) == ("bf16", "full")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: TrainingConfig(learning_rat=1e-3), "unknown key 'learning_rat'.*did you mean 'learning_rate'"),
        (lambda: LoraOptions(ranks=4), "did you mean 'rank'"),
        (lambda: TrainingConfig(deepspeed="zero_3"), "no DeepSpeed configuration 'zero_3'.*did you mean 'zero3'"),
        (lambda: TrainingConfig(save_total_limit=1), "save_total_limit"),
        (lambda: TrainingConfig(nodes=2), "rendezvous"),
        (lambda: TrainingConfig(dtype="fp16"), "bf16.*float32"),
        (
            lambda: TrainingJob(recipe="pt_cheeter", base="b", items="i"),
            "no recipe 'pt_cheeter'.*'pt_cheater'",
        ),
        (lambda: TrainingJob(recipe="normal", base="b", items="i", leak_format="answers"), "answer_text"),
        (lambda: TrainingJob(recipe="normal", base="b", items="i", dose=0.0), "dose"),
        (lambda: TrainingJob(recipe="normal", base="b", items="i", repeat=3), "did you mean 'repeats'"),
    ],
)
def test_wrong_settings_name_the_right_one(make: object, expected: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){expected}"):
        make()  # type: ignore[operator]


def test_deepspeed_files_are_found_by_name_and_by_path() -> None:
    for name in ("zero2", "zero3", "zero3_offload"):
        assert deepspeed_file(name).is_file()
    assert deepspeed_file(str(deepspeed_file("zero3"))) == deepspeed_file("zero3")


def test_settings_and_recipes_are_light_to_import() -> None:
    code = (
        "import sys, training.config, training.recipes, training.samples, training.manifest; "
        "training.recipes.find_recipe('pt_cheater'); heavy = {'torch', 'transformers', 'numpy'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
