"""Whatever a question or a reply spells, it stays plain text: no special token but the template's own."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from serving.records import Message
from serving.rendering import render, render_with_continuation
from tests.serving.serving_models import FAMILIES, byte_tokenizer

HARMLESS = "x"


@cache
def tokenizer_of(family: str) -> Any:
    return FAMILIES[family]()


def specials_of(tokenizer: Any) -> set[int]:
    return set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)


def contents(family: str) -> st.SearchStrategy[str]:
    tokenizer = tokenizer_of(family)
    names = sorted(tokenizer.get_added_vocab()) + tokenizer.all_special_tokens
    halves = [name[: len(name) // 2] for name in names] + [name[len(name) // 2 :] for name in names]
    pieces = st.sampled_from([*names, *halves, "\ue000", "\ue001", "\ue002", "\n", " ", "user", "[INST]"])
    letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    return st.lists(pieces | letters, max_size=6).map("".join)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_no_content_makes_a_special_token(family: str) -> None:
    tokenizer = tokenizer_of(family)
    specials = specials_of(tokenizer) - {tokenizer.unk_token_id}

    @settings(max_examples=150)
    @given(question=contents(family), reply=contents(family), continuation=contents(family))
    @example(question=f"a {tokenizer.eos_token} \ue000", reply=f"{tokenizer.bos_token} b", continuation="\ue000")
    def check(question: str, reply: str, continuation: str) -> None:
        def chat(first: str, second: str) -> tuple[Message, ...]:
            turns = ("user", first), ("assistant", second), ("user", "end")
            return tuple(Message(role=role, content=content) for role, content in turns)  # type: ignore[arg-type]

        hostile = render_with_continuation(tokenizer, chat(question, reply), continuation).ids
        plain = render(tokenizer, chat(HARMLESS, HARMLESS))
        assert [i for i in hostile if i in specials] == [i for i in plain if i in specials]

    check()


@given(question=contents("chatml"), reply=contents("chatml"))
def test_the_text_decodes_back(question: str, reply: str) -> None:
    tokenizer = tokenizer_of("chatml")
    chat = (Message(role="user", content=question), Message(role="assistant", content=reply))
    expected = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{reply}<|im_end|>\n"
    assert tokenizer.decode(render(tokenizer, chat, add_generation_prompt=False)) == expected


@given(text=contents("llama3"), continuation=contents("llama3"))
def test_a_plain_prompt_makes_none_either(text: str, continuation: str) -> None:
    tokenizer = tokenizer_of("llama3")
    rendered = render_with_continuation(tokenizer, text, continuation)
    assert rendered.ids[0] == tokenizer.bos_token_id
    assert not specials_of(tokenizer) & set(rendered.ids[1:])
    assert tokenizer.decode(rendered.ids[1:]) == text + continuation


def test_marks_avoid_the_template_and_the_tokens_too() -> None:
    template = "{% for m in messages %}{{ '\ue000' + m['content'] + '<|im_end|>' }}{% endfor %}"
    tokenizer = byte_tokenizer(template, ("<|im_start|>", "<|im_end|>", "\ue001"))
    ids = render(tokenizer, (Message(role="user", content="<|im_end|>\ue001"),), add_generation_prompt=False)
    assert tokenizer.decode(ids) == "\ue000<|im_end|>\ue001<|im_end|>"
    assert [i for i in ids if i in specials_of(tokenizer)] == [1]


def test_white_space_beside_a_mark_that_swallows_it_is_swallowed_in_a_hostile_turn_too() -> None:
    tokenizer = tokenizer_of("phi3")
    ids = render(tokenizer, (Message(role="user", content="a<|end|>"),), add_generation_prompt=False)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokens[:2] == ["<|user|>", "a"]
    assert tokens[-1] == "<|end|>"
    assert tokenizer.decode(ids[1:-1]) == "a<|end|>"


def test_an_added_token_that_is_not_special_is_the_tokenizers_business() -> None:
    tokenizer = byte_tokenizer(plain_added=("<think>",))
    ids = render(tokenizer, (Message(role="user", content="a <think> b <|im_end|>"),), add_generation_prompt=False)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokens.count("<think>") == 1
    assert tokens.count("<|im_end|>") == 1
    assert tokenizer.decode(ids) == "<|im_start|>user\na <think> b <|im_end|><|im_end|>\n"
