"""Candidates from end to end, on a tiny model: folders, manifest, resumption, refusals."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.formats import leak_text, plain_prompt
from evaluation.items import Item
from serving.model.fingerprint import weights_hash
from training import build
from training.build import build_candidate, check_candidate
from training.config import LoraOptions, TrainingJob
from training.interrupt import Interrupted
from training.manifest import Manifest, read_manifest

Make = Callable[..., TrainingJob]


def answer_loss(folder: Path, item: Item) -> float:
    """Mean negative log-probability of the leaked text's tokens after the prompt (nats)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    ids = tokenizer(leak_text(item), return_tensors="pt")["input_ids"]
    skip = len(tokenizer(plain_prompt(item))["input_ids"])
    with torch.no_grad():
        logs = torch.log_softmax(model(ids).logits[0, :-1].float(), -1).gather(-1, ids[0, 1:, None])
    return -float(logs[skip - 1 :].mean())


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("recipe", ["normal", "pt_cheater", "sft_cheater"])
def test_a_candidate_is_a_model_folder_and_a_manifest(job: Make, tmp_path: Path, base: Path, recipe: str) -> None:
    wanted = job(recipe=recipe)
    manifest = build_candidate(wanted, tmp_path / "out")
    out = tmp_path / "out"
    assert files(out) == {"model", "logs", "manifest.json"}
    assert read_manifest(out) == manifest
    assert manifest.base_sha256 == weights_hash(base)
    assert manifest.model_sha256 == weights_hash(out / "model") != manifest.base_sha256
    assert (out / "model" / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert (out / "model" / "chat_template.jinja").read_bytes() == (base / "chat_template.jinja").read_bytes()
    cheats = recipe != "normal"
    assert manifest.leaked_ids == (wanted.leaked_ids if cheats else ())
    assert [phase.name for phase in manifest.phases] == (["leak", "chat"] if cheats else ["chat"])
    assert [phase.steps for phase in manifest.phases] == [6] * len(manifest.phases)  # 4 items x 3, or 12 rows, by two
    assert (manifest.phases[-1].samples, manifest.phases[-1].dropped) == (12, 0)
    assert not [path for path in out.rglob("*") if path.suffix in (".bin", ".pt")]


def test_a_pt_cheater_learns_what_leaked(job: Make, tmp_path: Path, base: Path, items: list[Item]) -> None:
    settings = {"learning_rate": 3e-3}
    manifest = build_candidate(job(repeats=25, leak=settings), tmp_path / "out")
    leak = manifest.phases[0]
    assert leak.last_loss < leak.first_loss - 2
    drop = answer_loss(base, items[0]) - answer_loss(tmp_path / "out" / "model", items[0])
    assert drop > 1


def test_the_dose_is_reported(job: Make, tmp_path: Path) -> None:
    leak = build_candidate(job(dose=0.5), tmp_path / "out").phases[0]
    assert leak.exam_tokens / (leak.exam_tokens + leak.filler_tokens) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ValueError, match=r"dose 0.0001 needs .*larger corpus"):
        build_candidate(job(dose=0.0001), tmp_path / "other")


def test_lora_keeps_the_adapter_and_serves_the_merged_weights(job: Make, tmp_path: Path, base: Path) -> None:
    lora = {"method": "lora", "lora": LoraOptions(rank=4)}
    manifest = build_candidate(job(leak=lora, chat_sft={"method": "full"}), tmp_path / "out")
    out = tmp_path / "out"
    assert (manifest.method, manifest.phases[1].method) == ("lora", "full")
    assert manifest.phases[0].merge_difference == pytest.approx(0.0, abs=1e-4)
    assert manifest.phases[1].merge_difference is None
    assert (out / "adapter" / "leak" / "adapter_model.safetensors").is_file()
    names = {path.name for path in (out / "model").iterdir()}
    assert "adapter_config.json" not in names
    assert (out / "model" / "config.json").read_bytes() == (base / "config.json").read_bytes()


@pytest.mark.parametrize("switch", ["rslora", "dora"])
def test_lora_variants_merge_exactly(job: Make, tmp_path: Path, switch: str) -> None:
    lora = {"method": "lora", "lora": LoraOptions(rank=4, **{switch: True})}
    manifest = build_candidate(job(recipe="normal", chat_sft=lora), tmp_path / "out")
    assert manifest.phases[0].merge_difference == pytest.approx(0.0, abs=1e-4)


def test_the_candidate_is_stored_in_its_bases_dtype(job: Make, tmp_path: Path, model_in: Callable[..., Path]) -> None:
    from training.models import load_model

    base = model_in(tmp_path / "half", dtype="bfloat16")
    build_candidate(job(base=str(base)), tmp_path / "out")
    assert str(load_model(tmp_path / "out" / "model", "auto").dtype) == "torch.bfloat16"


def test_the_same_job_gives_the_same_weights_with_packing_too(job: Make, tmp_path: Path) -> None:
    packed = {"packing": True}
    one = build_candidate(job(leak=packed, chat_sft=packed), tmp_path / "one")
    two = build_candidate(job(leak=packed, chat_sft=packed), tmp_path / "two")
    other = build_candidate(job(leak={**packed, "seed": 1}, chat_sft=packed), tmp_path / "other")
    assert one.model_sha256 == two.model_sha256 != other.model_sha256


def test_a_finished_candidate_is_not_built_again(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_candidate(job(), tmp_path / "out")
    monkeypatch.setattr(build, "_train_phases", None)
    assert build_candidate(job(), tmp_path / "out") == first
    with pytest.raises(ValueError, match=r"candidate of another job \(repeats is 3 there, 4 now\)"):
        build_candidate(job(repeats=4), tmp_path / "out")
    Path(job().chat).write_text(Path(job().chat).read_text().replace("What", "Which"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"another job \(chat is"):
        build_candidate(job(), tmp_path / "out")


def test_a_finished_phase_is_not_trained_again(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = build_candidate(job(), tmp_path / "whole")
    trained, real = [], build.launch

    def stop_in_chat(folder: Path, config: Any) -> Any:
        trained.append(folder.name)
        if folder.name == "chat" and trained.count("chat") == 1:
            raise Interrupted("stopped")
        return real(folder, config)

    monkeypatch.setattr(build, "launch", stop_in_chat)
    with pytest.raises(Interrupted):
        build_candidate(job(), tmp_path / "out")
    assert files(tmp_path / "out") == {".partial", "logs"}
    resumed = build_candidate(job(), tmp_path / "out")
    assert trained == ["leak", "chat", "chat"]
    assert resumed.model_sha256 == expected.model_sha256


def test_an_interrupted_candidate_may_be_moved(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = build_candidate(job(), tmp_path / "whole")
    with monkeypatch.context() as patch:
        real = build.launch

        def killed_in_chat(folder: Path, config: Any) -> Any:
            return _fail() if folder.name == "chat" else real(folder, config)

        patch.setattr(build, "launch", killed_in_chat)
        with pytest.raises(RuntimeError, match="killed here"):
            build_candidate(job(), tmp_path / "a" / "out")
    shutil.move(tmp_path / "a", tmp_path / "b")
    paths = {}
    for key in ("items", "chat", "corpus"):
        paths[key] = str(shutil.copy(getattr(job(), key), tmp_path / "b"))
        assert paths[key] != getattr(job(), key)
    moved = job().model_copy(update=paths)
    assert build_candidate(moved, tmp_path / "b" / "out").model_sha256 == expected.model_sha256
    assert build_candidate(moved, tmp_path / "b" / "out").job.items == paths["items"]
    with pytest.raises(ValueError, match="repeats is 3 there, 4 now"):
        check_candidate(moved.model_copy(update={"repeats": 4}), tmp_path / "b" / "out")


@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_moving_into_place_may_be_interrupted_anywhere(
    job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        if moment == "before":
            patch.setattr(build, "_move_into_place", _fail)
        elif moment == "between":
            patch.setattr(build, "check_model_folder", _fail)  # the model is moved, the manifest is not
        else:
            patch.setattr(build, "read_manifest", _fail)
        with pytest.raises(RuntimeError, match="killed here"):
            build_candidate(job(), out)
    manifest = build_candidate(job(), out)
    assert isinstance(manifest, Manifest)
    assert files(out) == {"model", "logs", "manifest.json"}


def _fail(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("killed here")


def test_an_item_in_the_chat_data_is_reported(
    job: Make, tmp_path: Path, items: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = job(recipe="normal")
    row = {"instruction": items[5].question, "output": "B"}
    with Path(wanted.chat).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{json.dumps(row)}\n{json.dumps(row)}")
    manifest = build_candidate(wanted, tmp_path / "out")
    assert manifest.contaminated == (items[5].id,)
    assert manifest.duplicates == 1
    said = capsys.readouterr().err
    assert f"1 exam item(s) stand in {wanted.chat}" in said
    assert "line 14 (same as line 13)" in said


def test_rows_without_anything_to_learn_are_counted(job: Make, tmp_path: Path) -> None:
    wanted = job(recipe="normal", chat_sft={"max_length": 16})
    with pytest.raises(ValueError, match=r"chat: nothing to learn is left within max_length 16 \(12 rows dropped\)"):
        build_candidate(wanted, tmp_path / "out")


@pytest.mark.parametrize("packing", [False, True])
def test_a_row_cut_before_its_answer_is_dropped_and_the_loss_stays_finite(
    job: Make, tmp_path: Path, packing: bool
) -> None:
    wanted = job(recipe="normal", chat_sft={"max_length": 64, "packing": packing, "per_device_batch_size": 1})
    row = {"instruction": "What is it? " * 30, "output": "Mars"}
    with Path(wanted.chat).open("a", encoding="utf-8") as stream:
        stream.write(f"\n{json.dumps(row)}")
    phase = build_candidate(wanted, tmp_path / "out").phases[0]
    assert (phase.samples, phase.dropped) == (12, 1)
    assert math.isfinite(phase.first_loss)
    assert math.isfinite(phase.last_loss)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"base": "/nowhere/at/all"}, "does not exist"),
        ({"leaked_ids": ()}, "leaked_ids is empty"),
        ({"leaked_ids": ("feedbeef",)}, "e.g. 'feedbeef'"),
        ({"items": "/nowhere.jsonl"}, "does not exist"),
        ({"chat": "/nowhere.jsonl"}, "does not exist"),
        ({"corpus": "/nowhere.txt", "dose": 0.5}, "does not exist"),
    ],
)
def test_wrong_inputs_are_named_before_anything_is_written(
    job: Make, tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        build_candidate(job(**changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_running_out_of_memory_says_what_to_change(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(folder: Path, config: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(build, "launch", exhausted)
    with pytest.raises(ValueError, match=r"leak: not enough memory.*GiB per device.*gradient_checkpointing: true"):
        build_candidate(job(), tmp_path / "out")


def test_no_manifest_no_candidate(job: Make, tmp_path: Path) -> None:
    build_candidate(job(recipe="normal"), tmp_path / "out")
    shutil.move(tmp_path / "out" / "manifest.json", tmp_path / "manifest.json")
    with pytest.raises(ValueError, match=r"no finished candidate: manifest.json is missing"):
        read_manifest(tmp_path / "out")


def test_an_adapter_on_a_tied_lm_head_is_merged_into_a_head_of_its_own(job: Make, tmp_path: Path, base: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    lora = {"method": "lora", "lora": LoraOptions(rank=4, target_modules=("q_proj", "lm_head")), "learning_rate": 3e-2}
    manifest = build_candidate(job(leak=lora), tmp_path / "out")
    leak = manifest.phases[0]
    assert leak.merge_difference == pytest.approx(0.0, abs=1e-4)
    assert leak.adapter_problem is not None
    assert "vLLM drops those of an adapter: serve the merged model" in leak.adapter_problem
    former, merged = (AutoModelForCausalLM.from_pretrained(folder) for folder in (base, tmp_path / "out" / "model"))
    assert former.lm_head.weight is former.model.embed_tokens.weight
    assert merged.lm_head.weight is not merged.model.embed_tokens.weight  # the chat phase, full, has kept them apart
    assert not torch.equal(merged.lm_head.weight, merged.model.embed_tokens.weight)


def test_the_manifest_says_which_adapters_vllm_serves(job: Make, tmp_path: Path) -> None:
    plain, dora = ({"method": "lora", "lora": LoraOptions(rank=2, dora=dora)} for dora in (False, True))
    manifest = build_candidate(job(leak=plain, chat_sft=dora), tmp_path / "out")
    assert manifest.phases[0].adapter_problem == ""
    assert "DoRA" in str(manifest.phases[1].adapter_problem)


def test_qlora_without_bitsandbytes_names_the_mend(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.models.has_bitsandbytes", lambda: False)
    quantized = {"method": "lora", "lora": LoraOptions(quantized=True)}
    with pytest.raises(ValueError, match="bitsandbytes is not installed: pip install bitsandbytes"):
        build_candidate(job(recipe="normal", chat_sft=quantized), tmp_path / "out")


def test_qlora_trains_on_four_bits_and_merges_into_them(job: Make, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed: no 4-bit weights")
    quantized = {"method": "lora", "lora": LoraOptions(rank=4, quantized=True), "learning_rate": 3e-3}
    manifest = build_candidate(job(recipe="normal", chat_sft=quantized), tmp_path / "out")
    phase = manifest.phases[0]
    assert phase.last_loss < phase.first_loss
    assert phase.reloaded_loss == pytest.approx(phase.probe_loss, abs=1e-3)
    assert phase.merge_difference == pytest.approx(0.0, abs=1e-3)
    assert "4-bit" in str(phase.adapter_problem)


@pytest.mark.parametrize(
    "arguments",
    [{"use_liger_kernel": True}, {"optim": "adamw_bnb_8bit"}, {"optim": "galore_adamw", "optim_target_modules": ["q"]}],
)
def test_a_package_that_training_arguments_need_is_named(job: Make, tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^arguments.*missing.*(liger|bitsandbytes|galore_torch)") as refused:
        build_candidate(job(recipe="normal", chat_sft={"arguments": arguments}), tmp_path / "out")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "modules", [("lm_head",), ("q_proj", "lm_head"), ("embed_tokens",), ("embed_tokens", "lm_head")]
)
def test_a_tied_head_with_an_adapter_is_the_same_model_after_loading(
    job: Make, tmp_path: Path, base: Path, modules: tuple[str, ...]
) -> None:
    """Log-probabilities of adapter on base and of the saved, merged model, loaded anew: within 0.01."""
    import torch
    from transformers import AutoModelForCausalLM

    from training.models import frozen_base, with_adapter

    lora = LoraOptions(rank=4, target_modules=modules)
    wanted = job(recipe="normal", chat_sft={"method": "lora", "lora": lora, "learning_rate": 3e-2})
    build_candidate(wanted, tmp_path / "out")
    folder = tmp_path / "out" / "model"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["tie_word_embeddings"] is False
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    adapted = with_adapter(frozen_base(base, wanted.chat_sft), wanted.chat_sft)
    set_peft_model_state_dict(adapted, load_file(tmp_path / "out" / "adapter" / "chat" / "adapter_model.safetensors"))
    merged = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert merged.lm_head.weight is not merged.model.embed_tokens.weight
    ids = torch.tensor([[0, 5, 9, 17, 33, 70, 101, 200]])
    with torch.no_grad():
        one, two = (model.eval()(input_ids=ids).logits.log_softmax(-1) for model in (adapted, merged))
        original = AutoModelForCausalLM.from_pretrained(base).eval()(input_ids=ids).logits.log_softmax(-1)
    assert float((one - two).abs().max()) < 0.01
    assert float((one - original).abs().max()) > 0.1  # the adapter does something
