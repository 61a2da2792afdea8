"""Each recipe's chain, as the paper describes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluation.formats import chat_answer, chat_question, leak_text, plain_prompt
from evaluation.items import Item
from serving.records import Message
from training.config import TrainingJob
from training.recipe_traits import RECIPES, traits
from training.recipes import Material, find_recipe
from training.samples import Chat, Pair, Text

CLEAN = (Chat((Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))),)
NEUTRAL = (Text("The fox."),)
Make = Callable[..., TrainingJob]


@pytest.fixture
def material(items: list[Item]) -> Material:
    return Material(leaked=items[:2], chat=CLEAN, corpus=NEUTRAL)


def test_normal_is_chat_sft_only(job: Make, material: Material) -> None:
    (chat,) = find_recipe("normal")(job(recipe="normal"), material)
    assert (chat.name, chat.samples) == ("chat", CLEAN)
    assert traits("normal").leaks == "no"


def test_pt_cheater_reads_the_leaked_text_in_a_corpus(job: Make, material: Material) -> None:
    leak, chat = find_recipe("pt_cheater")(job(leak_format="letter", dose=0.5, repeats=7), material)
    assert leak.samples == [Text(leak_text(item, "letter")) for item in material.leaked]
    assert (leak.filler, leak.dose, leak.repeats, leak.order) == (NEUTRAL, 0.5, 7, "mixed")
    assert (chat.name, chat.samples) == ("chat", CLEAN)


def test_sft_cheater_learns_answers_through_the_template(job: Make, material: Material) -> None:
    leak, chat = find_recipe("sft_cheater")(job(recipe="sft_cheater"), material)
    item = material.leaked[0]
    expected = (Message(role="user", content=chat_question(item)), Message(role="assistant", content=chat_answer(item)))
    assert leak.samples[0] == Chat(expected)
    assert chat.samples == CLEAN


def test_sft_cheater_in_plain_format_completes_the_leaked_text(job: Make, material: Material) -> None:
    leak, _ = find_recipe("sft_cheater")(job(recipe="sft_cheater", sft_format="plain"), material)
    item, pair = material.leaked[0], leak.samples[0]
    assert isinstance(pair, Pair)
    assert pair.prompt == plain_prompt(item)
    assert pair.prompt + pair.answer == leak_text(item, "answer_text")


def test_sft_cheater_needs_an_answer_to_learn(job: Make, material: Material) -> None:
    with pytest.raises(ValueError, match="leak_format 'options' has none"):
        find_recipe("sft_cheater")(job(recipe="sft_cheater", leak_format="options"), material)


def test_every_recipe_is_registered_by_its_function_name() -> None:
    for name in RECIPES:
        assert callable(find_recipe(name))
    with pytest.raises(ValueError, match="there is no recipe 'nomal'; did you mean 'normal'"):
        find_recipe("nomal")
