"""What is learned, token by token: the details that go wrong elsewhere."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from serving.records import Message
from serving.rendering import render
from training.examples import Example, Tokeniser
from training.samples import Chat, Pair, Sample, Text


def chat(*turns: str) -> Chat:
    return Chat(tuple(Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(turns)))  # type: ignore[arg-type]


def make(tokenizer: Any, sample: Sample, length: int = 512) -> Example:
    return Tokeniser(tokenizer, length).one(sample)


def learned_text(tokenizer: Any, example: Example) -> list[str]:
    """Learned stretches as text."""
    stretches: list[list[int]] = []
    for index, (token, learn) in enumerate(zip(example.ids, example.learned, strict=True)):
        if learn:
            if not example.learned[index - 1]:
                stretches.append([])
            stretches[-1].append(token)
    return [tokenizer.decode(stretch) for stretch in stretches]


CONVERSATION = chat("What is 2 + 2?", "It is 4.", "Thanks.", "assistant\nIt is 4.\n\nUser: It is 4.")


@pytest.mark.parametrize("template", ["chatml", "llama2", "no_end", "none"])
def test_only_assistant_turns_are_learned(tokenizer_with: Any, template: str) -> None:
    tokenizer = tokenizer_with(template)
    sample = chat("It is 4.", "It is 4.", "assistant", "It is 4. user")
    stretches = learned_text(tokenizer, make(tokenizer, sample))
    answers = [text.replace("<|im_end|>", "").strip() for text in stretches]
    assert [answer for answer in answers if answer] == ["It is 4.", "It is 4. user"]


@pytest.mark.parametrize("template", ["chatml", "llama2"])
def test_every_answer_ends_with_a_learned_end_token(tokenizer_with: Any, template: str) -> None:
    tokenizer = tokenizer_with(template)
    stretches = learned_text(tokenizer, make(tokenizer, CONVERSATION))
    assert len(stretches) == 2
    assert all(text.endswith("<|im_end|>") for text in stretches)


@pytest.mark.parametrize("template", ["chatml", "llama2", "no_end", "none"])
@pytest.mark.parametrize("sample", [CONVERSATION, Text("Hello there"), Pair("What is", " it?")])
def test_the_final_eos_is_learned_though_pad_is_eos(tokenizer_with: Any, template: str, sample: Sample) -> None:
    tokenizer = tokenizer_with(template)
    assert tokenizer.pad_token_id == tokenizer.eos_token_id
    example = make(tokenizer, sample)
    last = max(index for index, token in enumerate(example.ids) if token == tokenizer.eos_token_id)
    assert example.learned[last]
    assert sum(token == tokenizer.eos_token_id for token in example.ids[last:]) == 1


@pytest.mark.parametrize("template", ["chatml", "llama2"])
def test_ids_are_those_of_apply_chat_template(tokenizer_with: Any, template: str) -> None:
    tokenizer = tokenizer_with(template)
    rows = [{"role": message.role, "content": message.content} for message in CONVERSATION.messages]
    expected = tokenizer.apply_chat_template(rows, tokenize=True, return_dict=False)
    assert list(make(tokenizer, CONVERSATION).ids) == expected


@pytest.mark.parametrize("template", ["chatml", "llama2", "none"])
def test_training_goes_on_from_the_very_ids_that_serving_sends(tokenizer_with: Any, template: str) -> None:
    tokenizer = tokenizer_with(template)
    example = make(tokenizer, CONVERSATION)
    prompt = render(tokenizer, CONVERSATION.messages[:3], add_generation_prompt=True)
    assert example.ids[: len(prompt)] == prompt
    assert not any(example.learned[len(prompt) - 3 : len(prompt)])
    assert example.learned[len(prompt)]


@pytest.mark.parametrize("sample", [Text("Hello there"), Pair("What is", " it?"), CONVERSATION])
@pytest.mark.parametrize("template", ["none", "no_end", "bos_no_end"])
def test_exactly_one_bos(tokenizer_with: Any, template: str, sample: Sample) -> None:
    tokenizer = tokenizer_with(template, adds_bos=True)
    ids = make(tokenizer, sample).ids
    assert ids[0] == tokenizer.bos_token_id
    assert ids.count(tokenizer.bos_token_id) == 1


def test_special_tokens_spelled_in_a_turn_stay_text(tokenizer_with: Any) -> None:
    tokenizer = tokenizer_with()
    example = make(tokenizer, chat("Say <|im_end|>", "It is <|im_end|> 4."))
    assert example.ids.count(tokenizer.eos_token_id) == 2
    assert learned_text(tokenizer, example) == ["It is <|im_end|> 4.<|im_end|>"]


def test_text_is_learned_but_for_its_first_token(tokenizer: Any) -> None:
    example = make(tokenizer, Text("The quick brown fox"))
    assert example.learned == (False, *[True] * (len(example.ids) - 1))


def test_a_pair_is_learned_in_its_answer_only(tokenizer: Any) -> None:
    example = make(tokenizer, Pair("What is 2 + 2? Answer:", " B. Mars"))
    assert learned_text(tokenizer, example) == [" B. Mars<|im_end|>"]


def test_a_token_merged_across_the_boundary_counts_to_the_answer(tokenizer: Any) -> None:
    whole = tokenizer("Question", add_special_tokens=False)["input_ids"]
    assert len(whole) == 1, "the fixture's tokenizer must merge the word"
    example = make(tokenizer, Pair("Quest", "ion"))
    assert example.ids == (whole[0], tokenizer.eos_token_id)
    example = make(tokenizer, Pair("Hello Quest", "ion: B"))
    assert [text.strip() for text in learned_text(tokenizer, example)] == ["Question: B<|im_end|>"]


def test_truncation_that_leaves_nothing_to_learn_drops_the_row_and_counts_it(tokenizer: Any) -> None:
    tokeniser = Tokeniser(tokenizer, 16)
    examples = tokeniser.all([Pair("What is it? " * 20, "B"), Pair("A", "B"), Text("Hello there " * 20)])
    assert [len(example.ids) for example in examples][1] == 16
    assert all(example.targets for example in examples)
    assert (tokeniser.counts.used, tokeniser.counts.truncated, tokeniser.counts.dropped) == (2, 2, 1)


def test_a_slow_tokenizer_or_one_without_eos_is_refused(tokenizer_with: Any) -> None:
    tokenizer = copy.deepcopy(tokenizer_with())
    tokenizer.eos_token = None
    with pytest.raises(ValueError, match="no EOS"):
        Tokeniser(tokenizer, 16)
    with pytest.raises(ValueError, match="fast tokenizer"):
        Tokeniser(object(), 16)
