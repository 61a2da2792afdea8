"""Small tokenizers with the chat templates of the large families, and random models of two layers to go with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SENTENCES = (
    "Question: Which planet is known as the red one? A. Venus B. Mars C. Jupiter D. Saturn\nAnswer: B. Mars.",
    "The quick brown fox jumps over the lazy dog. Hello there, how are you? I am fine, thanks.",
    "user assistant system model User: Assistant: System: [INST] [/INST] <<SYS>> start_of_turn end_of_turn",
    'What is 2 + 2? It is 4. {"verdict":"yes","score":3} Today Date: Cutting Knowledge Date: 26 Jul 2024\n\n',
)

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}"
    "{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for m in rest %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system != false %}"
    "{% set content = '<<SYS>>\n' + system + '\n<</SYS>>\n\n' + m['content'] %}"
    "{% else %}{% set content = m['content'] %}{% endif %}"
    "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
LLAMA3 = (
    "{{- bos_token }}{%- if not date_string is defined %}{%- if strftime_now is defined %}"
    '{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}'
    "{%- endif %}{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content']|trim %}"
    "{%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}"
    '{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}{{- "Cutting Knowledge Date: December 2023\n" }}'
    '{{- "Today Date: " + date_string + "\n\n" }}{{- system }}{{- "<|eot_id|>" }}{%- for m in messages %}'
    "{{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n'+ m['content'] | trim + '<|eot_id|>' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"
)
DATED = "{{ 'Today is ' + strftime_now('%Y-%m-%d') + '.\n' }}" + CHATML
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
PHI3 = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + '\n' + m['content'] + '<|end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' + '\n' }}{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] != 'system' %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_tokenizer(
    template: str | None = CHATML,
    specials: Sequence[Any] = ("<|im_start|>", "<|im_end|>"),
    *,
    bos: str | None = "<|im_start|>",
    eos: str | None = "<|im_end|>",
    pad: str | None = "<|im_end|>",
    adds_bos: bool = False,
    plain_added: Sequence[Any] = (),
    vocabulary: int = 400,
) -> Any:
    """Byte-level BPE (GPT-2, Llama-3, Qwen): every text can be encoded and decodes to itself."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(SENTENCES * 4, trainer)
    if plain_added:
        raw.add_tokens(list(plain_added))
    if adds_bos:
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, raw.token_to_id(bos))]
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=bos, eos_token=eos, pad_token=pad)
    tokenizer.chat_template = template
    return tokenizer


def metaspace_tokenizer(
    template: str | None,
    specials: Sequence[Any],
    *,
    bos: str | None,
    eos: str,
    scheme: str = "first",
    adds_bos: bool = True,
) -> Any:
    """A tokenizer of the SentencePiece kind: spaces are "▁", and one is put in front of the text's first word."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    raw.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    bytes_tokens = [f"<0x{value:02X}>" for value in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=[*specials, "<unk>"], initial_alphabet=["▁"], show_progress=False
    )
    raw.train_from_iterator([word for line in SENTENCES * 4 for word in line.split()], trainer)
    state = json.loads(raw.to_str())
    vocabulary = state["model"]["vocab"]
    for token in bytes_tokens:
        vocabulary.setdefault(token, len(vocabulary))
    raw = Tokenizer.from_str(json.dumps(state))
    if adds_bos:
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, raw.token_to_id(bos))]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=bos, eos_token=eos, pad_token=eos, unk_token="<unk>"
    )
    tokenizer.chat_template = template
    return tokenizer


def chatml() -> Any:
    return byte_tokenizer()


def llama3() -> Any:
    names = ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")
    return byte_tokenizer(LLAMA3, names, bos=names[0], eos=names[1], pad=names[1], adds_bos=True)


def gemma() -> Any:
    names = ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>")
    return byte_tokenizer(GEMMA, names, bos="<bos>", eos="<eos>", pad="<pad>", adds_bos=True)


def llama2(scheme: str = "first") -> Any:
    return metaspace_tokenizer(LLAMA2, ("<s>", "</s>"), bos="<s>", eos="</s>", scheme=scheme)


def phi3() -> Any:
    """Its turn marks swallow the white space after them (``rstrip``)."""
    from tokenizers import AddedToken

    names = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
    marks = [AddedToken(name, rstrip=True, special=True, normalized=False) for name in names]
    return byte_tokenizer(PHI3, ["<s>", "<|endoftext|>", *marks], bos="<s>", eos="<|endoftext|>", pad="<|endoftext|>")


def base_model() -> Any:
    """No chat template, no BOS: a base model like Pythia."""
    return byte_tokenizer(None, ("<|endoftext|>",), bos=None, eos="<|endoftext|>", pad=None)


FAMILIES = {"chatml": chatml, "llama2": llama2, "llama3": llama3, "gemma": gemma, "phi3": phi3}


def save_model(folder: Path, tokenizer: Any = None, *, kind: str = "llama", seed: int = 0, **config: Any) -> Path:
    """A random model of two layers (hidden size 64) and its tokenizer in ``folder``.

    Its weights are ten times as large as usual, so that distributions are far from uniform and greedy choices clear.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tokenizer if tokenizer is not None else chatml()
    torch.manual_seed(seed)
    sizes = {
        "vocab_size": len(tokenizer) + 5,  # padded, as real heads are
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.2,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**sizes, **config}))
    model.float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
