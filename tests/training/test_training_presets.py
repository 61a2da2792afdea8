"""A key that is given changes that key; the paper's settings come by name."""

from __future__ import annotations

from typing import Any

import pytest

from training import presets
from training.config import TrainingConfig, TrainingJob
from training.presets import tell_of_reset

PHASES = ("leak", "chat_sft")


def make(**settings: Any) -> TrainingJob:
    return TrainingJob(**{"recipe": "pt_cheater", "base": "b", "items": "i", **settings})


def dump(config: TrainingConfig) -> dict[str, Any]:
    return config.model_dump(mode="json")


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("learning_rate", 2e-4),  # the leak's default
        ("learning_rate", 1e-3),
        ("epochs", 3),
        ("dtype", "bf16"),
        ("seed", 5),
        ("method", "lora"),
        ("save_steps", 7),
        ("arguments", {"neftune_noise_alpha": 5}),
    ],
)
def test_a_key_that_is_given_changes_that_key(phase: str, key: str, value: Any) -> None:
    plain, changed = make(), make(**{phase: {key: value}})
    for name in PHASES:
        expected = dump(getattr(plain, name)) | ({key: value} if name == phase else {})
        assert dump(getattr(changed, name)) == expected
    assert changed.repeats == plain.repeats


def test_the_defaults_are_small() -> None:
    leak, chat = make().leak, make(leak={}, chat_sft={}).chat_sft
    small = (1, 4, 1, "float32", 1024)
    for config, rate in ((leak, 2e-4), (chat, 2e-5)):
        assert config.learning_rate == rate
        assert (
            config.epochs,
            config.per_device_batch_size,
            config.gradient_accumulation,
            config.dtype,
            config.max_length,
        ) == small


def test_the_papers_settings_are_asked_for_by_name() -> None:
    job = make(leak={"preset": "kieval_paper", "save_steps": 5}, repeats=3)
    assert dump(job.leak) == {**dump(TrainingConfig()), "save_steps": 5}  # Appendix F: see test_training_config
    assert (job.chat_sft, job.repeats) == (make().chat_sft, 3)
    whole = make(preset="kieval_paper", chat_sft={"epochs": 2})
    assert (whole.leak, whole.repeats) == (TrainingConfig(), 1)
    assert whole.chat_sft == TrainingConfig(epochs=2)
    assert make(preset="kieval_paper", leak={"preset": None}).leak == make().leak
    assert make(preset="kieval_paper", repeats=2).repeats == 2


@pytest.mark.parametrize("name", [["kieval_paper"], {"kieval_paper": 1}, 4])
def test_a_preset_that_is_no_name_is_an_error_of_the_user(name: object) -> None:
    with pytest.raises(ValueError, match="no preset"):
        make(leak={"preset": name})


@pytest.mark.parametrize("settings", [{"preset": "kieval"}, {"leak": {"preset": "kieval"}}])
def test_a_preset_that_does_not_exist_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no preset 'kieval'.*kieval_paper"):
        make(**settings)


def test_what_is_written_down_is_read_back() -> None:
    job = make(leak={"learning_rate": 1e-3}, chat_sft={"preset": "kieval_paper"})
    assert TrainingJob(**job.model_dump(mode="json")) == job


def test_every_preset_sets_what_the_defaults_set() -> None:
    keys = set(presets.DEFAULTS["leak"])
    assert all(set(one) == keys for one in [*presets.PRESETS.values(), *presets.DEFAULTS.values()])


def test_old_files_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    presets._say.cache_clear()
    for _ in range(3):
        tell_of_reset({"leak": {"learning_rate": 1e-4, "epochs": 1}, "chat_sft": {}})
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert (
        "note: leak leaves out per_device_batch_size 4 (1), gradient_accumulation 1 (4), dtype float32 (bf16)" in told
    )
    assert "preset: kieval_paper" in told
    everything = dict.fromkeys(presets.DEFAULTS["leak"], 1)
    tell_of_reset({"leak": everything, "chat_sft": {"preset": "kieval_paper"}})
    tell_of_reset({"leak": {"epochs": 9}, "preset": "kieval_paper"})
    tell_of_reset({"repeats": 3})
    assert capsys.readouterr().err == ""
