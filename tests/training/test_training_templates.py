"""Training in the ids of serving: four families of chat templates, and a base model without one.

Each tokenizer has its family's own special tokens and the template as its publisher writes it (shortened to what these
conversations reach). The expected texts are written by hand from the publishers' model cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from serving.records import Message
from serving.rendering import render
from training.examples import Example, Tokeniser
from training.samples import Chat

CONVERSATION = Chat(
    (
        Message(role="user", content="What is 2 + 2?"),
        Message(role="assistant", content="It is 4."),
        Message(role="user", content="Thanks. It is 4."),
        Message(role="assistant", content="Hello there, user."),
    )
)


@dataclass(frozen=True)
class Family:
    """specials: the first is the BOS, the last the EOS; adds_bos: the tokenizer puts the BOS before a text

    whole: the conversation as it is rendered; learned: what of it is learned
    split: the pre-tokenizer's pattern (None: GPT-2's)
    """

    specials: tuple[str, ...]
    template: str | None
    whole: str
    learned: tuple[str, str]
    adds_bos: bool = True
    split: str | None = None


# Llama-3's own pre-tokenizer, which keeps a run of line breaks whole whatever follows (GPT-2's does not)
LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)

CHATML = Family(
    specials=("<|im_start|>", "<|im_end|>"),
    template=(
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'"
        " + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
    whole=(
        "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\nIt is 4.<|im_end|>\n"
        "<|im_start|>user\nThanks. It is 4.<|im_end|>\n<|im_start|>assistant\nHello there, user.<|im_end|>\n"
    ),
    learned=("It is 4.<|im_end|>", "Hello there, user.<|im_end|>"),
    adds_bos=False,
)
LLAMA2 = Family(
    specials=("<s>", "</s>"),
    template=(
        "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
        "'Conversation roles must alternate user/assistant') }}{% endif %}{% if message['role'] == 'user' %}"
        "{{ bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
        "{{ ' ' + message['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
    ),
    whole=("<s>[INST] What is 2 + 2? [/INST] It is 4. </s><s>[INST] Thanks. It is 4. [/INST] Hello there, user. </s>"),
    learned=(" It is 4. </s>", " Hello there, user. </s>"),
)
LLAMA3 = Family(
    specials=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    template=(
        "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
        "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
        "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
        "{% if add_generation_prompt %}"
        "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
    ),
    whole=(
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhat is 2 + 2?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nIt is 4.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nThanks. It is 4.<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello there, user.<|eot_id|>"
    ),
    learned=("It is 4.<|eot_id|>", "Hello there, user.<|eot_id|>"),
    split=LLAMA3_SPLIT,
)
GEMMA = Family(
    specials=("<bos>", "<start_of_turn>", "<end_of_turn>", "<eos>"),
    template=(
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
        "{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
        "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}"
        "{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
    ),
    whole=(
        "<bos><start_of_turn>user\nWhat is 2 + 2?<end_of_turn>\n<start_of_turn>model\nIt is 4.<end_of_turn>\n"
        "<start_of_turn>user\nThanks. It is 4.<end_of_turn>\n<start_of_turn>model\nHello there, user.<end_of_turn>\n"
    ),
    learned=("It is 4.<end_of_turn>", "Hello there, user.<end_of_turn>"),
)
BASE = Family(
    specials=("<s>", "</s>"),
    template=None,
    whole=(
        "<s>User: What is 2 + 2?\n\nAssistant: It is 4.\n\nUser: Thanks. It is 4.\n\nAssistant: Hello there, user.</s>"
    ),
    learned=(" It is 4.", " Hello there, user.</s>"),
)
FAMILIES = {"chatml": CHATML, "llama2": LLAMA2, "llama3": LLAMA3, "gemma": GEMMA, "base": BASE}


def tokenizer_of(family: Family) -> Any:
    """A byte-level BPE tokenizer with the family's special tokens; it has no pad token of its own."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if family.split is not None:
        cut = pre_tokenizers.Split(Regex(family.split), behavior="isolated")
        raw.pre_tokenizer = pre_tokenizers.Sequence(
            [cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    raw.decoder = decoders.ByteLevel()
    text = " ".join(message.content for message in CONVERSATION.messages) + " user model assistant User: Assistant:\n\n"
    raw.train_from_iterator(
        [text] * 4,
        trainers.BpeTrainer(
            vocab_size=380,
            special_tokens=[*family.specials],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if family.adds_bos:
        bos = family.specials[0]
        raw.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=family.specials[0],
        eos_token=family.specials[-1],
        pad_token=family.specials[-1],
        additional_special_tokens=[*family.specials[1:-1]],
    )
    tokenizer.chat_template = family.template
    return tokenizer


@pytest.fixture(params=FAMILIES, scope="module")
def family(request: pytest.FixtureRequest) -> tuple[Family, Any, Example]:
    found = FAMILIES[request.param]
    tokenizer = tokenizer_of(found)
    return found, tokenizer, Tokeniser(tokenizer, 512).one(CONVERSATION)


def test_the_ids_are_those_of_the_publishers_text(family: tuple[Family, Any, Example]) -> None:
    said, tokenizer, example = family
    assert tokenizer.decode(example.ids) == said.whole
    assert list(example.ids) == tokenizer(said.whole, add_special_tokens=False)["input_ids"]
    if said.template is not None:
        rows = [{"role": message.role, "content": message.content} for message in CONVERSATION.messages]
        assert list(example.ids) == tokenizer.apply_chat_template(rows, tokenize=True, return_dict=False)


@pytest.mark.parametrize("asked", [1, 3])
def test_every_answer_begins_where_serving_lets_the_model_begin(
    family: tuple[Family, Any, Example], asked: int
) -> None:
    _, tokenizer, example = family
    prompt = render(tokenizer, CONVERSATION.messages[:asked], add_generation_prompt=True)
    assert example.ids[: len(prompt)] == prompt
    assert example.learned[len(prompt)]
    assert not example.learned[len(prompt) - 1]


def test_the_served_conversation_is_the_trained_one(family: tuple[Family, Any, Example]) -> None:
    said, tokenizer, example = family
    served = render(tokenizer, CONVERSATION.messages, add_generation_prompt=False)
    assert example.ids == (served if said.template else (*served, tokenizer.eos_token_id))


def test_exactly_the_answers_and_their_ends_are_learned(family: tuple[Family, Any, Example]) -> None:
    said, tokenizer, example = family
    stretches: list[list[int]] = []
    for index, (token, learn) in enumerate(zip(example.ids, example.learned, strict=True)):
        if learn:
            if not example.learned[index - 1]:
                stretches.append([])
            stretches[-1].append(token)
    assert tuple(tokenizer.decode(stretch) for stretch in stretches) == said.learned


def test_one_bos_at_the_beginning(family: tuple[Family, Any, Example]) -> None:
    said, tokenizer, example = family
    assert example.ids[0] == tokenizer.bos_token_id
    assert example.ids[1] != tokenizer.bos_token_id
    assert example.ids.count(tokenizer.bos_token_id) == said.whole.count(said.specials[0])


def test_a_system_turn_is_folded_where_the_template_refuses_one() -> None:
    system = Chat((Message(role="system", content="Be brief."), *CONVERSATION.messages[:2]))
    tokenizer = tokenizer_of(GEMMA)
    example = Tokeniser(tokenizer, 512).one(system)
    assert tokenizer.decode(example.ids) == (
        "<bos><start_of_turn>user\nBe brief.\n\nWhat is 2 + 2?<end_of_turn>\n"
        "<start_of_turn>model\nIt is 4.<end_of_turn>\n"
    )
    assert example.ids == render(tokenizer, system.messages, add_generation_prompt=False)
