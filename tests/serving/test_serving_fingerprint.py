"""What is wrong with a model folder, said so that it can be mended; and what changes a fingerprint."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from serving.engines.common import load_tokenizer
from serving.model import fingerprint as module
from serving.model.fingerprint import (
    ModelError,
    check_model_folder,
    device_name,
    file_hash,
    files_hash,
    fingerprint,
    resolve_model,
    weights_hash,
    weights_of_adapter,
)
from serving.model.spec import ModelSpec
from tests.serving.serving_models import byte_tokenizer, save_model


def folder_of(root: Path, **files: bytes | str) -> Path:
    """A folder with these files; ``__`` in a name stands for a dot."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (root / name.replace("__", ".")).write_bytes(data)
    return root


INDEX = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})


@pytest.mark.parametrize(
    ("files", "what", "mend"),
    [
        ({}, "has no config.json", "give the folder that config.json lies in"),
        ({"config__json": "{}"}, "has no *.safetensors weights", "copy the model again"),
        ({"config__json": "{}", "model__safetensors": ""}, "model.safetensors is empty", "copy it again"),
        (
            {"config__json": "{}", "pytorch_model__bin": "x", "x__pt": "x"},
            "has only pickled weights (pytorch_model.bin, x.pt)",
            "convert them to safetensors, or set allow_pickle: true",
        ),
        (
            {"config__json": "{}", "model-1__safetensors": "x", "model__safetensors__index__json": INDEX},
            "lacks model-2.safetensors (1 of 2 shards missing)",
            "copy the model again",
        ),
        (
            {"adapter_config__json": "{}", "adapter_model__safetensors": "x"},
            "is a PEFT adapter, not a model",
            "give its base model as path and this folder as adapter",
        ),
    ],
    ids=["no config", "no weights", "empty weights", "pickle", "missing shard", "adapter"],
)
def test_a_folder_that_is_no_model(files: dict[str, str], what: str, mend: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", **files)
    with pytest.raises(ModelError) as caught:
        check_model_folder(folder)
    message = str(caught.value)
    assert what in message
    assert str(folder) in message
    assert mend in message


def test_a_path_that_is_no_folder(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    with pytest.raises(ModelError, match=rf"{missing} does not exist; give a folder with config\.json"):
        check_model_folder(missing)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"m\.gguf is a file, not a model folder; 'proctor models import FILE OUT'"):
        check_model_folder(tmp_path / "m.gguf")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ModelError, match=rf"is a file, not a model folder; give the folder: {tmp_path}"):
        check_model_folder(tmp_path / "model.safetensors")


def test_what_a_folder_of_weights_gives(tmp_path: Path) -> None:
    shards = {"model-2__safetensors": "b", "model-1__safetensors": "a", "model__safetensors__index__json": INDEX}
    folder = folder_of(tmp_path / "m", config__json="{}", **shards)
    assert [path.name for path in check_model_folder(folder)] == ["model-1.safetensors", "model-2.safetensors"]
    pickled = folder_of(tmp_path / "p", config__json="{}", pytorch_model__bin="x")
    assert check_model_folder(pickled, allow_pickle=True) == [pickled / "pytorch_model.bin"]


def test_a_model_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"nobody/nothing is neither a folder nor in the local hub cache; give"):
        resolve_model(ModelSpec(path="nobody/nothing"))
    assert resolve_model(ModelSpec(path="./nobody/nothing")) == Path("nobody/nothing")
    (tmp_path / "nobody" / "nothing").mkdir(parents=True)
    assert resolve_model(ModelSpec(path="nobody/nothing")) == Path("nobody/nothing")
    assert resolve_model(ModelSpec(path="~/m")) == Path.home() / "m"


def test_a_folder_without_a_tokenizer_is_named(tiny: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", config__json=(tiny / "config.json").read_bytes())
    with pytest.raises(ModelError, match=f"the tokenizer of {folder} can't be loaded"):
        load_tokenizer(ModelSpec(path=str(folder)), folder)


def test_a_missing_template_and_a_missing_adapter(tiny: Path, tmp_path: Path) -> None:
    template = tmp_path / "none.jinja"
    spec = ModelSpec(path=str(tiny), engine="transformers", chat_template=str(template))
    with pytest.raises(ModelError, match=rf"chat_template file {template} does not exist; give a Jinja file"):
        fingerprint(spec, mode="fast", device="cpu")
    folder = folder_of(tmp_path / "adapter", adapter_config__json="{}")
    with pytest.raises(ModelError, match=rf"adapter folder {folder} lacks adapter_model\.safetensors; give the folder"):
        weights_of_adapter(folder)


# hashes


@pytest.fixture
def reads(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes every time that a file's content is hashed."""
    found: list[int] = []
    digest = module.hashlib.file_digest

    def counting(stream: Any, name: str) -> Any:
        found.append(1)
        return digest(stream, name)

    monkeypatch.setattr(module.hashlib, "file_digest", counting)
    monkeypatch.setattr("serving.model.hashes.SETTLED_S", -60.0)  # the files of these tests are all new
    return found


def test_a_hash_is_kept_until_the_file_changes(reads: list[int], tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"abc")
    os.utime(path, ns=(10**18, 10**18))
    first = file_hash(path)
    assert first == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (file_hash(path), len(reads)) == (first, 1)
    path.write_bytes(b"abd")
    os.utime(path, ns=(10**18, 10**18 + 1))
    assert (file_hash(path) != first, len(reads)) == (True, 2)
    path.write_bytes(b"abcd")
    os.utime(path, ns=(10**18, 10**18 + 1))
    assert (file_hash(path) not in (first, None), len(reads)) == (True, 3)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert (file_hash(link), len(reads)) == (file_hash(path), 3)


def test_a_spoiled_cache_is_not_believed(reads: list[int], own_cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"abc")
    first = file_hash(path)
    (entry,) = (own_cache / "hashes").iterdir()
    for spoiled in (b"", b"ba78", b"\xff" * 10):
        entry.write_bytes(spoiled)
        assert file_hash(path) == first
    assert len(reads) == 4


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    (tmp_path / "weights").write_bytes(b"abc")
    assert file_hash(tmp_path / "weights").startswith("ba7816bf")


@pytest.mark.usefixtures("own_cache")
def test_the_hash_of_files_depends_on_names_and_contents(tmp_path: Path) -> None:
    a, b = folder_of(tmp_path / "a", x="1", y="2"), folder_of(tmp_path / "b", x="2", y="1")
    c = folder_of(tmp_path / "c", x="1", y="2")
    assert files_hash([a / "x", a / "y"]) == files_hash([c / "y", c / "x"])
    assert files_hash([a / "x", a / "y"]) != files_hash([b / "x", b / "y"])
    assert files_hash([a / "x"]) != files_hash([a / "x", a / "y"])


# fingerprints


@pytest.mark.usefixtures("own_cache")
def test_what_changes_a_fingerprint(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(folder: Path = tiny, mode: str = "lockstep", device: str = "cpu", **spec: Any) -> str:
        return fingerprint(ModelSpec(path=str(folder), engine="transformers", **spec), mode=mode, device=device)

    def copy(name: str) -> Path:
        return shutil.copytree(tiny, tmp_path / name)

    plain = of()
    assert of(copy("moved")) == plain, "the path counts"
    assert of(memory_share=0.5) == plain

    weights = copy("weights")
    data = bytearray((weights / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (weights / "model.safetensors").write_bytes(data)
    config = copy("config")
    (config / "config.json").write_text((config / "config.json").read_text() + "\n", encoding="utf-8")
    tokenizer = copy("tokenizer")
    (tokenizer / "tokenizer.json").write_text((tokenizer / "tokenizer.json").read_text() + "\n", encoding="utf-8")
    shipped = copy("shipped template")
    (shipped / "chat_template.jinja").write_text("{{ messages[0]['content'] }}", encoding="utf-8")
    template, other = tmp_path / "one.jinja", tmp_path / "two.jinja"
    template.write_text("{{ 1 }}", encoding="utf-8")
    other.write_text("{{ 2 }}", encoding="utf-8")
    adapter = folder_of(tmp_path / "adapter", adapter_config__json="{}", adapter_model__safetensors="x")
    adapted = folder_of(tmp_path / "adapter2", adapter_config__json="{}", adapter_model__safetensors="y")

    changed = [
        plain,
        of(weights),
        of(config),
        of(tokenizer),
        of(shipped),
        of(mode="fast"),
        of(mode="batch-invariant"),
        of(device="cuda:NVIDIA H100"),
        of(dtype="float32"),
        of(dtype="bfloat16"),
        of(quantization="fp8"),
        of(max_length=128),
        of(max_num_seqs=32),
        of(chat_template="none"),
        of(chat_template=str(template)),
        of(chat_template=str(other)),
        of(bos="never"),
        of(stop=("x",)),
        of(reasoning_tags=None),
        of(tensor_parallel=2),
        of(adapter=str(adapter)),
        of(adapter=str(adapted)),
        of(engine_args={"attn_implementation": "eager"}),
        fingerprint(ModelSpec(path=str(tiny), engine="vllm"), mode="lockstep", device="cpu"),
    ]
    assert len(set(changed)) == len(changed), [i for i, value in enumerate(changed) if value in changed[:i]]
    renamed = tmp_path / "renamed.jinja"
    renamed.write_text("{{ 1 }}", encoding="utf-8")
    assert of(chat_template=str(renamed)) == of(chat_template=str(template)), "the template's path counts"
    monkeypatch.setattr(module, "version_of", lambda package: "9.9" if package == "transformers" else "1")
    upgraded = of()
    monkeypatch.setattr(module, "version_of", lambda package: "9.9" if package == "xgrammar" else "1")
    assert len({plain, upgraded, of()}) == 3
    monkeypatch.setattr(module, "RENDERING_VERSION", -1)
    assert of() not in changed


@pytest.mark.usefixtures("own_cache")
def test_the_weights_hash_covers_weights_and_config(tiny: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny, tmp_path / "copy")
    assert weights_hash(copy) == weights_hash(tiny)
    (copy / "generation_config.json").write_text("{}", encoding="utf-8")
    assert weights_hash(copy) == weights_hash(tiny)
    (copy / "config.json").write_text("{}", encoding="utf-8")
    assert weights_hash(copy) != weights_hash(tiny)


def test_a_scripted_model_needs_no_folder() -> None:
    one = ModelSpec(path="m", engine="scripted")
    rules = ModelSpec(path="m", engine="scripted", engine_args={"replies": [{"match": "a", "reply": "b"}]})
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(one, mode="fast", device="cpu"))
    assert fingerprint(one, mode="fast", device="cpu") != fingerprint(rules, mode="fast", device="cpu")


def test_the_device_can_be_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_DEVICE", "cuda:NVIDIA H100")
    assert device_name() == "cuda:NVIDIA H100"


# the spec


def test_a_spec_from_a_path_alone_and_its_refusals() -> None:
    assert ModelSpec.model_validate("some/model") == ModelSpec(path="some/model")
    assert ModelSpec(path="m", engine="scripted").resolved().engine == "scripted"
    assert ModelSpec(path="m").resolved().engine in ("vllm", "transformers")
    for bad in ({"dtype": "int8"}, {"memory_share": 0}, {"max_length": 4}, {"maxlength": 99}, {"engine": "remote"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            ModelSpec.model_validate({"path": "m", **bad})


@pytest.mark.parametrize(
    ("tokenizer", "more", "touched"),
    [
        (byte_tokenizer(), {}, False),
        (byte_tokenizer(), {"bos": "always"}, True),
        (byte_tokenizer(adds_bos=True), {}, True),
        (byte_tokenizer(adds_bos=True), {"bos": "never"}, False),
        (byte_tokenizer(specials=("<|im_start|>", "<|im_end|>", "<think>", "</think>")), {}, True),
        (byte_tokenizer(plain_added=("<think>", "</think>")), {}, False),
    ],
)
def test_only_models_that_a_later_rule_touches_have_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: Any, more: dict[str, Any], touched: bool
) -> None:
    folder = save_model(tmp_path, tokenizer)
    spec = ModelSpec(path=str(folder), engine="transformers", **more)
    now = fingerprint(spec, mode="fast", device="cpu")
    monkeypatch.setattr(module, "_later_rules", lambda folder, spec: [])
    assert (fingerprint(spec, mode="fast", device="cpu") != now) == touched
