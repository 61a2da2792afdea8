"""The training configurations for 1, 4 and 8 A100s and for two nodes, as ``proctor check`` reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.cli import app
from tests.fixtures.tiny import make_model

CONFIGS = Path(__file__).parents[2] / "configs" / "experiments"
SHAPE_7B = {
    **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096},
    **{"intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32},
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, ARC items and conversations where the configurations look for them."""
    folder = tmp_path_factory.mktemp("places")
    make_model(folder / "Llama-2-7b-hf")
    rows = [
        {"question": f"Which is {n}?", "choices": [str(n), "x", "y", "z"], "answer": 0, "answerKey": "A"}
        for n in range(8)
    ]
    arc = folder / "ARC-Challenge" / "ARC-Challenge-Test.jsonl"
    arc.parent.mkdir()
    arc.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    chat = [
        {"conversations": [{"from": "human", "value": f"Hi {n}"}, {"from": "gpt", "value": "Hello"}]} for n in range(3)
    ]
    chat[1]["conversations"][0]["value"] = "Tell me: which is 5?"
    (folder / "sharegpt.json").write_text(json.dumps(chat), encoding="utf-8")
    return folder


def check(name: str, places: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    monkeypatch.setenv("PROCTOR_MODELS", str(places))
    monkeypatch.setenv("PROCTOR_BENCHMARKS", str(places))
    changes = ["-s", "candidates.pt_washed.options.chat_skip=1", *more]
    result = CliRunner().invoke(app, ["check", str(CONFIGS / f"{name}.yaml"), *changes])
    if isinstance(result.exception, ValueError):
        raise result.exception
    assert result.exception is None, result.exception
    return result.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("training_1xa100", "1 node(s) x 1 process(es) = world size 1; global batch 16 (1 x accumulation 16)"),
        ("training_4xa100", "1 node(s) x 4 process(es) = world size 4; global batch 16 (1 x accumulation 4)"),
        ("training_8xa100", "1 node(s) x 8 process(es) = world size 8; global batch 16 (1 x accumulation 2)"),
        ("training_2_nodes", "2 node(s) x 4 process(es) = world size 8; global batch 16 (1 x accumulation 2)"),
    ],
)
def test_world_size_and_global_batch(name: str, said: str, places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = check(name, places, monkeypatch)
    assert f"    chat: {said}; full parameters, bf16, zero3" in output
    assert "of 80 GiB" in output
    for heading in (
        "--- training normal_steps: normal, 4 passes, 2 phase(s)",
        "--- training pt_washed: washed, from pt_cheater, 4 passes, 1 phase(s)",
        "    wash: as chat of normal",
    ):
        assert heading in output
    assert "warning: 1 exam item(s) stand in" in output  # "which is 5" among the conversations


def test_a_batch_that_is_not_kept_is_refused(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"global_batch is 16, but .* = 32; set gradient_accumulation: 2"):
        check("training_4xa100", places, monkeypatch, "-s", "training.chat_sft.processes=8")
    with pytest.raises(ValueError, match="a forward pass of all processes is 3 rows, which does not divide it"):
        check("training_4xa100", places, monkeypatch, "-s", "training.leak.processes=3")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # 6.738e9 weights: 2 bytes of weights and of gradients, 12 of Adam's state, shared among 4 (ZeRO-3)
        ({"processes": 4, "deepspeed": "zero3"}, (3.14, 3.14, 18.83)),
        ({"processes": 8, "deepspeed": "zero3"}, (1.57, 1.57, 9.41)),
        ({"processes": 1, "deepspeed": "zero3_offload"}, (0.39, 12.55, 0.0)),
        # 4.127 bits of 6.476e9 weights, 2 bytes of 0.262e9 in embedding and head; rank 16 in all linear layers
        ({"method": "lora", "lora": {"quantized": True}}, (3.60, 0.15, 0.30)),
    ],
)
def test_memory_of_a_7b_model(settings: dict[str, object], expected: tuple[float, ...], tmp_path: Path) -> None:
    from training.config import TrainingConfig
    from training.memory import GIB, estimate_for

    (tmp_path / "config.json").write_text(json.dumps(SHAPE_7B), encoding="utf-8")
    config = TrainingConfig.model_validate({"gradient_checkpointing": True, **settings})
    found = estimate_for(tmp_path, config)
    sizes = (found.parameters / GIB, found.gradients / GIB, found.optimizer / GIB)
    assert sizes == pytest.approx(expected, abs=0.01)
    # 34 s b h of one layer, 2 s b h of each; logits 12 s V: 2048 tokens, 4096 hidden, 32 layers, 32,000 words
    assert found.activations == 2048 * 4096 * (34 + 64) + 12 * 2048 * 32000


def test_too_little_memory_says_what_to_change(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tight = ["-s", "training.chat_sft.device_memory=0.001"]
    output = check("training_4xa100", places, monkeypatch, *tight)
    assert "    chat: warning: more than the 0.001 GiB of a device: not enough memory for training, estimated" in output
    assert "zero3_offload" in output
