"""Tiny models with tokenizers of every awkward kind, built in memory: no download, no real weights."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.items import Item, make_item

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + m['content'].strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
NO_END = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
WORDS = (
    "Question: Which planet is known as the red one? A. Venus B. Mars C. Jupiter D. Saturn Answer: B. Mars. "
    "The quick brown fox jumps over the lazy dog. user assistant system User: Assistant: Hello there, how are you? "
    "I am fine, thanks. Answer with A, B, C or D and its text. [INST] [/INST] What is 2 + 2? It is 4.\n\n"
)


TEMPLATES = {
    "chatml": CHATML,
    "llama2": LLAMA2,
    "no_end": NO_END,
    "bos_no_end": "{{ bos_token }}" + NO_END,
    "none": None,
}


def make_tokenizer(template: str = "chatml", *, adds_bos: bool = False) -> Any:
    """A byte-level BPE tokenizer whose pad token is its EOS."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    specials = ["<|im_start|>", "<|im_end|>"]
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([WORDS] * 4, trainer)
    if adds_bos:
        raw.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A", special_tokens=[("<|im_start|>", 0)]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<|im_start|>", eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    tokenizer.chat_template = TEMPLATES[template]
    return tokenizer


def make_model(folder: Path, *, template: str = "chatml", dtype: str = "float32", seed: int = 0) -> Path:
    """A random Llama (2 layers, hidden size 64) with its tokenizer, saved to ``folder``."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(template)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Models this small are faster on one thread, above all where other tests run beside them."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def one_thread_of_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for processes that a test starts."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def tokenizer_with() -> Callable[..., Any]:
    """``tokenizer_with(template, adds_bos=...)``: see TEMPLATES."""
    return functools.cache(make_tokenizer)


@pytest.fixture(scope="session")
def model_in() -> Callable[..., Path]:
    """``model_in(folder, template=..., dtype=..., seed=...)`` saves a tiny model there."""
    return make_model


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return make_tokenizer()


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(scope="session")
def items() -> list[Item]:
    names = ["Venus", "Mars", "Jupiter", "Saturn"]
    return [
        make_item(
            benchmark="tiny",
            split="test",
            subject="sky",
            question=f"Which planet has the number {n}?",
            choices=names,
            answer="ABCD"[n % 4],
        )
        for n in range(8)
    ]


@pytest.fixture
def job(tmp_path: Path, base: Path, items: list[Item]) -> Callable[..., Any]:
    """A function that makes a small, fast job; keyword arguments override its keys (``leak`` and ``chat_sft`` too)."""
    from training.config import TrainingConfig, TrainingJob

    (tmp_path / "items.jsonl").write_text("\n".join(json.dumps(item.to_json()) for item in items), encoding="utf-8")
    rows = [[("user", f"What is {n} + {n}?"), ("assistant", f"It is {2 * n}.")] for n in range(12)]
    chat = [{"messages": [{"role": role, "content": text} for role, text in row]} for row in rows]
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, chat)), encoding="utf-8")
    corpus = "\n\n".join(f"The quick brown fox number {n} jumps over the lazy dog." for n in range(40))
    (tmp_path / "corpus.txt").write_text(corpus, encoding="utf-8")

    def make(**changes: Any) -> TrainingJob:
        quick = {"learning_rate": 1e-3, "epochs": 1, "per_device_batch_size": 2, "gradient_accumulation": 1}
        quick |= {"dtype": "float32", "max_length": 256}
        leak = TrainingConfig(**{**quick, **changes.pop("leak", {})})
        chat_sft = TrainingConfig(**{**quick, **changes.pop("chat_sft", {})})
        keys = {
            "recipe": "pt_cheater",
            "base": str(base),
            "items": str(tmp_path / "items.jsonl"),
            "leaked_ids": tuple(item.id for item in items[:4]),
            "chat": str(tmp_path / "chat.jsonl"),
            "chat_rows": None,
            "corpus": str(tmp_path / "corpus.txt"),
            "repeats": 3,
        }
        return TrainingJob(**{**keys, **changes}, leak=leak, chat_sft=chat_sft)

    return make
