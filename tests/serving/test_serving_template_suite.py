"""Ten template families whose ids can be written down by hand: a byte b is 100 + b, specials are 0, 1, 2 ..."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from serving.engines.common import split_reasoning
from serving.records import Message
from serving.rendering import render
from tests.serving.serving_models import CHATML, DATED, GEMMA, LLAMA2, LLAMA3, PHI3

MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('After the optional system message, roles must alternate user/assistant') }}{% endif %}"
    "{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ m['content'] + eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)
REASONING = CHATML.replace("<|im_start|>assistant\n' }}{% endif %}", "<|im_start|>assistant\n<think>\n' }}{% endif %}")
SKIPS_SYSTEM = CHATML.replace("{{ '<|im_start|>'", "{% if m['role'] != 'system' %}{{ '<|im_start|>'").replace(
    "<|im_end|>\n' }}{% endfor %}", "<|im_end|>\n' }}{% endif %}{% endfor %}"
)
SYSTEM, USER, REPLY, AGAIN = "Be brief.", "Hi?", "Yes.", "Why?"


def tokenizer(template: str | None, *specials: str, bos: str | None, eos: str, adds_bos: bool = False) -> Any:
    """Bytes one by one; special token i has id i."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    shown = dict(zip(range(256), _alphabet(), strict=True))
    vocabulary = {name: i for i, name in enumerate(specials)} | {shown[b]: 100 + b for b in range(256)}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(list(specials))
    if adds_bos:
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, specials.index(bos))]
        )  # type: ignore[arg-type]
    made = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=bos, eos_token=eos, pad_token=eos)
    made.chat_template = template
    return made


def _alphabet() -> list[str]:
    """GPT-2's spelling of bytes: printable ones stand for themselves, the others follow from U+0100."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256))
    return [chr(b) if b in plain else chr(256 + next(others)) for b in range(256)]


def ids(*parts: int | str) -> tuple[int, ...]:
    """What is written by hand: numbers are special tokens, texts are bytes."""
    return tuple(i for part in parts for i in ([part] if isinstance(part, int) else [100 + b for b in part.encode()]))


class Family(NamedTuple):
    """chat: ids of system, user, assistant, user, and the opening of the reply; alone: of one user turn ``USER``

    hostile: a special token's text, put into the user's turn; it stands where USER does, as bytes
    """

    tokenizer: Any
    chat: tuple[int, ...]
    alone: tuple[int, ...]
    hostile: str
    bos: int | None


def families() -> dict[str, Family]:
    start, end = "<|im_start|>", "<|im_end|>"
    chatml = {"bos": start, "eos": end}
    chat = ids(
        *(0, "system\nBe brief.", 1, "\n", 0, "user\nHi?", 1, "\n", 0, "assistant\nYes.", 1, "\n"),
        *(0, "user\nWhy?", 1, "\n", 0, "assistant\n"),
    )
    alone = ids(0, "user\nHi?", 1, "\n", 0, "assistant\n")
    folded = ids(0, "user\nBe brief.\n\nHi?", 1, "\n", 0, "assistant\nYes.", 1, "\n", 0, "user\nWhy?", 1, "\n", 0,
                 "assistant\n")  # fmt: skip
    header = ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>")
    knowledge = "\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
    turns = ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>")
    marks = ("<s>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
    return {
        "chatml": Family(tokenizer(CHATML, start, end, **chatml), chat, alone, end, 0),
        "no system in the template": Family(tokenizer(SKIPS_SYSTEM, start, end, **chatml), folded, alone, end, 0),
        "today's date": Family(
            tokenizer(DATED, start, end, **chatml),
            ids("Today is 2024-07-26.\n") + chat,
            ids("Today is 2024-07-26.\n") + alone,
            start,
            None,
        ),
        "reasoning": Family(
            tokenizer(REASONING, start, end, **chatml), chat + ids("<think>\n"), alone + ids("<think>\n"), end, 0
        ),
        "llama-2": Family(
            tokenizer(LLAMA2, "<s>", "</s>", bos="<s>", eos="</s>", adds_bos=True),
            ids(0, "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi? [/INST] Yes. ", 1, 0, "[INST] Why? [/INST]"),
            ids(0, "[INST] Hi? [/INST]"),
            "</s>",
            0,
        ),
        "llama-3": Family(
            tokenizer(LLAMA3, *header, bos=header[0], eos=header[1], adds_bos=True),
            ids(
                0,
                2,
                "system",
                3,
                f"{knowledge}Be brief.",
                1,
                2,
                "user",
                3,
                "\n\nHi?",
                1,
                2,
                "assistant",
                3,
                "\n\nYes.",
                1,
                2,
                "user",
                3,
                "\n\nWhy?",
                1,
                2,
                "assistant",
                3,
                "\n\n",
            ),
            ids(0, 2, "system", 3, knowledge, 1, 2, "user", 3, "\n\nHi?", 1, 2, "assistant", 3, "\n\n"),
            "<|eot_id|>",
            0,
        ),
        "gemma, no system role": Family(
            tokenizer(GEMMA, *turns, bos="<bos>", eos="<eos>", adds_bos=True),
            ids(
                2,
                3,
                "user\nBe brief.\n\nHi?",
                4,
                "\n",
                3,
                "model\nYes.",
                4,
                "\n",
                3,
                "user\nWhy?",
                4,
                "\n",
                3,
                "model\n",
            ),
            ids(2, 3, "user\nHi?", 4, "\n", 3, "model\n"),
            "<end_of_turn>",
            2,
        ),
        "mistral, strict alternation": Family(
            tokenizer(MISTRAL, "<s>", "</s>", bos="<s>", eos="</s>", adds_bos=True),
            ids(0, "[INST] Be brief.\n\nHi? [/INST]Yes.", 1, "[INST] Why? [/INST]"),
            ids(0, "[INST] Hi? [/INST]"),
            "<s>",
            0,
        ),
        "phi-3": Family(
            tokenizer(PHI3, *marks, bos="<s>", eos="<|endoftext|>"),
            ids(2, "\nBe brief.", 5, "\n", 3, "\nHi?", 5, "\n", 4, "\nYes.", 5, "\n", 3, "\nWhy?", 5, "\n", 4, "\n"),
            ids(3, "\nHi?", 5, "\n", 4, "\n"),
            "<|end|>",
            None,
        ),
        "none": Family(
            tokenizer(None, "<|endoftext|>", bos=None, eos="<|endoftext|>"),
            ids("System: Be brief.\n\nUser: Hi?\n\nAssistant: Yes.\n\nUser: Why?\n\nAssistant:"),
            ids("User: Hi?\n\nAssistant:"),
            "<|endoftext|>",
            None,
        ),
    }


FAMILIES = families()
CHAT = (
    Message(role="system", content=SYSTEM),
    Message(role="user", content=USER),
    Message(role="assistant", content=REPLY),
    Message(role="user", content=AGAIN),
)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_conversation(name: str) -> None:
    family = FAMILIES[name]
    assert render(family.tokenizer, CHAT) == family.chat
    assert render(family.tokenizer, CHAT[1:2]) == family.alone


@pytest.mark.parametrize("name", FAMILIES)
def test_a_special_token_in_the_users_text_stays_text(name: str) -> None:
    family = FAMILIES[name]
    said = f"A{family.hostile}B"
    found = render(family.tokenizer, (Message(role="user", content=said),))
    before = _common(family.alone, ids(USER))
    assert found == family.alone[:before] + ids(said) + family.alone[before + len(ids(USER)) :]


def _common(whole: tuple[int, ...], part: tuple[int, ...]) -> int:
    """Where ``part`` stands in ``whole``."""
    (at,) = [i for i in range(len(whole)) if whole[i : i + len(part)] == part]
    return at


@pytest.mark.parametrize("name", FAMILIES)
def test_one_bos_at_the_beginning(name: str) -> None:
    family = FAMILIES[name]
    found = render(family.tokenizer, CHAT[1:2])
    if family.bos is None:
        assert found[0] >= 100 or found[0] != family.tokenizer.bos_token_id
    else:
        assert found[0] == family.bos
        assert found[1] != family.bos


def test_neighbours_of_one_role_are_joined_where_roles_must_alternate() -> None:
    for name, opening in (("mistral, strict alternation", ids(0, "[INST] Hi?\n\nWhy? [/INST]")),):
        assert render(FAMILIES[name].tokenizer, (CHAT[1], CHAT[3])) == opening


def test_reasoning_that_the_prompt_opened() -> None:
    tags = ("<think>", "</think>")
    assert split_reasoning("<think>" + "so it is\n</think>\nYes.", tags) == ("so it is", "Yes.", True)
    assert split_reasoning("<think>" + "and then", tags) == ("and then", "", False)
