"""Trees of shared prefixes: every text is in the layout once, as itself, and costs what it doesn't share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.engines.transformers_engine import TransformersBackend
from serving.model.spec import ModelSpec
from serving.records import ScoreRequest
from serving.scoring.prefix_tree import MIN_HEADER, Header, Ids, plan
from tests.serving.serving_models import save_model

texts_of_few_letters = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=40).map(tuple), unique=True)


def headers(header: Header, above: Ids = ()) -> Iterator[tuple[Ids, Header]]:
    """Every header with its whole prefix."""
    prefix = above + header.ids
    yield prefix, header
    for child in header.children:
        yield from headers(child, prefix)


@settings(deadline=None, max_examples=100)
@given(texts_of_few_letters, st.integers(1, 60), st.integers(0, 30))
def test_every_text_is_laid_out_once_and_sees_itself_alone(texts: list[Ids], pack_tokens: int, common: int) -> None:
    texts = [(7,) * common + text for text in texts]
    layout = plan(texts, pack_tokens=pack_tokens)
    placed = list(layout.singles)
    for prefix, header in headers(layout.root):
        assert header.start == len(prefix) - len(header.ids)
        assert all(texts[i][: len(prefix)] == prefix for i in header.texts)
        assert header is layout.root or len(header.ids) >= MIN_HEADER
        for pack in header.packs:
            assert pack.visible_TT.shape == (len(pack.ids), len(pack.ids))
            reached = set()
            for i, path in pack.paths.items():
                placed.append(i)
                assert prefix + tuple(pack.ids[t] for t in path) == texts[i]
                assert [pack.depths[t] for t in path] == list(range(len(prefix), len(texts[i])))
                for seen in accumulate([t] for t in path):
                    assert list(np.flatnonzero(pack.visible_TT[seen[-1]])) == sorted(seen)
                reached.update(path)
            assert reached == set(range(len(pack.ids))), "a token that belongs to no text"
            assert len(pack.ids) <= pack_tokens or len(pack.paths) == 1
    distinct = len({text[: d + 1] for text in texts for d in range(len(text))})
    if texts and distinct <= pack_tokens and not layout.singles:
        (pack,) = layout.root.packs
        assert len(pack.ids) == distinct, "one token for each distinct prefix"
    assert sorted(placed) == list(range(len(texts)))


def test_four_options_of_one_question_are_one_tree() -> None:
    question = tuple(range(100, 130))
    layout = plan([(*question, 1, 2), (*question, 1, 3), question, (*question, 4)])
    assert layout.singles == []
    (pack,) = layout.root.packs
    assert len(pack.ids) == 30 + 4  # 1, 2, 3 and 4: the first two options share 1
    assert pack.depths[-4:] == [30, 31, 31, 30]


def test_a_few_shot_prefix_is_a_header_and_questions_fill_the_packs() -> None:
    shots = tuple(range(1000, 1100))
    questions = [(*shots, 2000 + q, *range(30), option) for q in range(40) for option in range(4)]
    layout = plan(questions, pack_tokens=128)
    (header,) = layout.root.children
    assert (layout.root.packs, layout.singles, header.ids) == ([], [], shots)
    assert all(len(pack.ids) <= 128 for pack in header.packs)
    # 1 + 30 tokens of a question and 4 options are 35: three questions to a pack
    assert [len(pack.ids) for pack in header.packs] == [105] * 13 + [35]


def test_two_subjects_have_a_header_each_under_the_one_they_share() -> None:
    def subject(s: int) -> list[Ids]:
        return [(*range(50), *range(s, s + 60), q, *range(40)) for q in range(s + 100, s + 120)]

    layout = plan(subject(1000) + subject(2000), pack_tokens=200)
    (shared,) = layout.root.children
    assert shared.ids == tuple(range(50))
    assert [(child.start, child.ids[0], len(child.ids)) for child in shared.children] == [
        (50, 1000, 60),
        (50, 2000, 60),
    ]


def test_texts_that_share_little_are_not_laid_out() -> None:
    layout = plan([(1, 2, *range(10 * k, 10 * k + 300)) for k in range(1, 9)])
    assert layout.singles == list(range(8))
    assert (layout.root.packs, layout.root.children) == ([], [])
    assert plan([]).singles == []
    assert plan([(1, 2, 3)]).singles == [0]


def test_a_short_prefix_of_long_texts_saves_too_little_for_masks_of_their_length() -> None:
    layout = plan([(*range(30), *range(1000 * k, 1000 * k + 500)) for k in range(1, 9)])
    assert layout.singles == list(range(8))
    assert (layout.root.packs, layout.root.children) == ([], [])


def test_prefixes_of_one_another_may_nest_deeper_than_pythons_stack() -> None:
    text = tuple(range(30_000))
    header = plan([text[:length] for length in range(25, 30_000, 25)]).root
    for depth in range(1, 1001):
        (header,) = header.children
        assert (header.start, len(header.ids)) == (25 * (depth - 1), 25)


LONG = "The quick brown fox jumps over the lazy dog. Which planet is known as the red one? "
GROUPS = [
    *(ScoreRequest(prompt=LONG * 3 + f"Question {q}?\nAnswer:", continuation=f" {o}", answer_only=True)
      for q in range(30) for o in ("one", "two", "two and more", "Mars")),
    *(ScoreRequest(prompt=LONG * 3 + f"Question {q}", moments=True) for q in range(3)),
    ScoreRequest(prompt=LONG * 3, moments=True),
    ScoreRequest(prompt=LONG, moments=True),
    ScoreRequest(prompt="Hello there, how are you?", moments=True),
    ScoreRequest(prompt="Hello there, how is it?", moments=True),
    ScoreRequest(prompt="a"),
    ScoreRequest(prompt=""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("llama", {}),
        ("gemma2", {"head_dim": 16, "final_logit_softcapping": 5.0, "query_pre_attn_scalar": 16}),
        ("gpt_neox", {}),
        ("gpt2", {}),
        ("qwen2", {}),
        ("mistral", {"sliding_window": 64}),
        ("opt", {"word_embed_proj_dim": 32}),
        ("bloom", {}),
        ("mamba", {}),
    ],
)
def test_a_tree_gives_what_each_text_gives_alone(kind: str, config: dict[str, object], tmp_path: Path) -> None:
    folder = save_model(tmp_path / kind, kind=kind, **config)
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32"))
    together = backend.score(GROUPS)
    for ours, request in zip(together, GROUPS, strict=True):
        (alone,) = backend.score([request])
        assert (ours.ids, ours.segments, ours.ranks) == (alone.ids, alone.segments, alone.ranks)
        for name in ("logprobs", "means", "stds"):
            assert getattr(ours, name) == pytest.approx(getattr(alone, name), abs=2e-5), name
    computed, asked = (sum(getattr(t, f"{name}_tokens") for t in together) for name in ("computed", "asked"))
    if kind in ("bloom", "mamba"):  # positions from the mask, or no attention at all
        assert backend.tree_limit == 0
    elif kind == "mistral":
        assert backend.tree_limit == 64
    else:
        assert backend.tree_limit >= 4096
        assert computed < asked / 3
    assert computed <= asked


def test_a_batch_in_another_order_costs_the_same(tiny: Path) -> None:
    backend = TransformersBackend(ModelSpec(path=str(tiny), engine="transformers", dtype="float32"))
    shuffled = random.Random(0).sample(GROUPS, len(GROUPS))
    costs = [sum(t.computed_tokens for t in backend.score(order)) for order in (GROUPS, shuffled)]
    assert costs[0] == costs[1]


LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "short_factor": [1.0] * 8,
    "long_factor": [8.0] * 8,
}


def test_rotary_frequencies_that_change_with_the_length_bound_the_trees(tmp_path: Path) -> None:
    # A text beyond 150 tokens is computed with other frequencies from its first token on; its header of 131 wasn't.
    folder = save_model(
        tmp_path / "phi3",
        kind="phi3",
        original_max_position_embeddings=150,
        rope_parameters={**LONGROPE, "original_max_position_embeddings": 150},
    )
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32"))
    requests = [
        ScoreRequest(prompt=LONG * 3 + f"Question {q}? " + "Mars, " * (q % 3) * 10, continuation=" one", bos="always")
        for q in range(40)
    ]
    together = backend.score(requests)
    assert backend.tree_limit == 150
    assert {table.asked_tokens > 150 for table in together} == {True, False}
    for ours, request in zip(together, requests, strict=True):
        assert ours.logprobs == pytest.approx(backend.score([request])[0].logprobs, abs=2e-5)


def test_an_attention_that_adds_a_mask_of_booleans_gets_no_trees(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "llama")
    eager = ModelSpec(
        path=str(folder), engine="transformers", dtype="bfloat16", engine_args={"attn_implementation": "eager"}
    )
    assert TransformersBackend(eager).tree_limit == 0


def test_the_first_header_needs_no_mask(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = TransformersBackend(ModelSpec(path=str(tiny), engine="transformers", dtype="float32"))
    calls = []
    compute = backend.tree_states

    def spy(ids_BT: Any, depths_BT: Any, visible_BTS: Any, header: Any) -> tuple[Any, Any]:
        calls.append((ids_BT.shape[1], None if visible_BTS is None else tuple(visible_BTS.shape)))
        return compute(ids_BT, depths_BT, visible_BTS, header)

    monkeypatch.setattr(backend, "tree_states", spy)
    backend.score(GROUPS[:120])
    (length, mask), *packs = calls
    assert (length > 100, mask) == (True, None)
    assert packs
    assert all(visible is not None and visible[2] == visible[1] + length for _, visible in packs)
