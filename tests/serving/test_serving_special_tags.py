"""Reasoning tags that are special tokens, which a decoded text leaves out: told by their ids, on every engine."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from serving.engines.common import completion, end_ids, marked, prepare, special_tags
from serving.engines.transformers_engine import TransformersBackend
from serving.engines.vllm_engine import VllmBackend
from serving.model.fingerprint import ModelError
from serving.model.spec import ModelSpec
from serving.records import Completion, Message, Request, Sampling, ScoreRequest
from tests.serving.serving_models import byte_tokenizer, save_model

TAGS = ("[THINK]", "[/THINK]")
SPECIALS = ("<|im_start|>", "<|im_end|>", *TAGS)
CHAT = Request(prompt=(Message(role="user", content="2 + 2?"),), sampling=Sampling(max_tokens=40, stop=("STOP",)))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("thinker"), byte_tokenizer(specials=SPECIALS))


def spec_of(folder: Path, **more: Any) -> ModelSpec:
    return ModelSpec(**{"path": str(folder), "engine": "transformers", "reasoning_tags": TAGS, **more})


def by_transformers(folder: Path, said: list[int], request: Request = CHAT) -> Completion:
    """The engine's answer where the model says these tokens."""
    backend = TransformersBackend(spec_of(folder))

    def generate(input_ids: torch.Tensor, **_: Any) -> torch.Tensor:
        return torch.cat([input_ids, torch.tensor([said])], dim=1)

    backend.model.generate = generate
    return backend.generate([request])[0]


def by_vllm(folder: Path, said: list[int], monkeypatch: pytest.MonkeyPatch, request: Request = CHAT) -> Completion:
    for name in ("vllm", "vllm.lora", "vllm.lora.request", "vllm.sampling_params"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["vllm.lora.request"].LoRARequest = object  # type: ignore[attr-defined]
    sys.modules["vllm.sampling_params"].StructuredOutputsParams = SimpleNamespace  # type: ignore[attr-defined]
    backend = bare_vllm(folder)
    plain = backend._tokenizer.decode(said, skip_special_tokens=True)
    output = SimpleNamespace(finish_reason="stop", text=plain, token_ids=said)
    backend._llm = SimpleNamespace(generate=lambda *_, **__: [SimpleNamespace(outputs=[output])])
    return backend.generate([request])[0]


def bare_vllm(folder: Path, adapters: tuple[str, ...] = ()) -> Any:
    """The backend without its engine."""
    backend: Any = object.__new__(VllmBackend)
    tokenizer = byte_tokenizer(specials=SPECIALS)
    backend._spec, backend._mode, backend._max_length = spec_of(folder, engine="vllm"), "fast", 256
    backend._tokenizer, backend._end_ids = tokenizer, end_ids(folder, tokenizer)
    backend._adapters = {path: number for number, path in enumerate(adapters, start=1)}
    backend._vllm = SimpleNamespace(SamplingParams=SimpleNamespace)
    return backend


def tokens(*parts: str) -> list[int]:
    """Ids of texts, each a special token where it is one's whole spelling."""
    tokenizer = byte_tokenizer(specials=SPECIALS)
    ids: list[int] = []
    for part in parts:
        ids += [tokenizer.convert_tokens_to_ids(part)] if part in SPECIALS else tokenizer(part)["input_ids"]
    return ids


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
@pytest.mark.parametrize(
    ("said", "text", "reasoning", "complete"),
    [
        (("[THINK]", "It may be 5.", "[/THINK]", "4", "<|im_end|>"), "4", "It may be 5.", True),
        (("opened before", "[/THINK]", " 4", "<|im_end|>"), "4", "opened before", True),
        (("4 ", "[THINK]", "or 5", "<|im_end|>"), "4", "or 5", False),
        (("4", "<|im_end|>"), "4", "", True),
        (("[THINK]", "a", "[/THINK]", "4", "[/THINK]", "!STOP5", "<|im_end|>"), "4!", "a", True),
    ],
)
def test_reasoning_is_split_off_by_ids(
    thinker: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    said: tuple[str, ...],
    text: str,
    reasoning: str,
    complete: bool,
) -> None:
    ids = tokens(*said)
    answer = by_transformers(thinker, ids) if engine == "transformers" else by_vllm(thinker, ids, monkeypatch)
    assert (answer.text, answer.reasoning, answer.complete) == (text, reasoning, complete)


def test_a_tag_that_is_only_spelled_is_text(thinker: Path) -> None:
    tokenizer = byte_tokenizer(specials=SPECIALS)
    spelled = tokenizer("I write [THINK] here", split_special_tokens=True)["input_ids"]
    answer = by_transformers(thinker, [*spelled, *tokens("<|im_end|>")])
    assert (answer.text, answer.reasoning) == ("I write [THINK] here", "")


def test_a_template_that_opens_the_tag(thinker: Path) -> None:
    tokenizer = byte_tokenizer(specials=SPECIALS)
    tokenizer.chat_template += "{% if add_generation_prompt %}[THINK]{% endif %}"
    spec = spec_of(thinker)
    (ready,) = prepare(spec, tokenizer, 256, [CHAT])
    assert ready.thinking
    said = marked(tokenizer, ready, tokens("cut in the mid"), ())
    assert said is not None
    cut = completion(spec, CHAT, ready, said, "length", 4)
    assert (cut.text, cut.reasoning) == ("", "cut in the mid")


def test_tags_that_are_text_or_unknown_are_not_told_by_ids() -> None:
    plain = byte_tokenizer(plain_added=("<think>", "</think>"))  # as Qwen's: added, but not special
    assert special_tags(plain, ("<think>", "</think>")) is None
    assert special_tags(byte_tokenizer(), TAGS) is None
    assert special_tags(byte_tokenizer(), None) is None


def test_an_engine_with_adapters_refuses_to_score(thinker: Path) -> None:
    backend = bare_vllm(thinker, adapters=("/adapters/a",))
    with pytest.raises(ModelError, match=r"can't score with an adapter \(/adapters/a\); use transformers"):
        backend.score([ScoreRequest(prompt="a b")])
