from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.benchmarks.splits import draw, exemplars_for, halves, members
from evaluation.items import make_item
from tests.evaluation.exam_driver import make_items

ITEMS = make_items(61, ("physics", "biology", "history"))


@given(st.randoms(use_true_random=False), st.integers(0, 2**31), st.integers(2, 61))
def test_halves_depend_on_ids_and_seed_only(shuffler: random.Random, seed: int, n: int) -> None:
    items = ITEMS[:n]
    shuffled = items.copy()
    shuffler.shuffle(shuffled)
    leaked, untouched = halves(items, seed)
    assert halves(shuffled, seed) == (leaked, untouched)
    assert set(leaked) | set(untouched) == {item.id for item in items}
    assert not set(leaked) & set(untouched)
    assert (len(leaked), len(untouched)) == (n // 2, n - n // 2)


def test_halves_differ_by_seed_and_are_stable_over_releases() -> None:
    assert halves(ITEMS, 1) != halves(ITEMS, 2)
    few = make_items(4)
    # Written down once: another half here would silently change what every experiment leaks.
    assert halves(few, 0).leaked == (few[1].id, few[2].id)


def test_halves_refuse_what_they_cannot_halve() -> None:
    with pytest.raises(ValueError, match="there are 1 items"):
        halves(ITEMS[:1], 0)
    with pytest.raises(ValueError, match=r"occurs 2 times.*duplicates: report"):
        halves([*ITEMS, ITEMS[0]], 0)


@given(st.randoms(use_true_random=False), st.integers(0, 2**31), st.integers(1, 60))
def test_draws_are_nested_and_keep_the_order(shuffler: random.Random, seed: int, n: int) -> None:
    drawn = draw(ITEMS, n, seed)
    assert len(drawn) == n
    assert drawn == [item for item in ITEMS if item in drawn]
    assert set(drawn) <= set(draw(ITEMS, n + 1, seed))
    shuffled = ITEMS.copy()
    shuffler.shuffle(shuffled)
    assert set(draw(shuffled, n, seed)) == set(drawn)


def test_draw_refuses_the_impossible() -> None:
    for n in (0, -1, 62):
        with pytest.raises(ValueError, match=rf"draw {n} items; it must be 1 to 61"):
            draw(ITEMS, n, 0)


def test_exemplars_are_one_list_per_subject() -> None:
    physics, biology = ITEMS[0], ITEMS[1]
    pool = make_items(200, ("physics", "biology", "law"))[61:]
    for item in (physics, biology):
        shots = exemplars_for(item, pool, 5, 4)
        assert len(set(shots)) == 5
        assert {shot.subject for shot in shots} == {item.subject}
        assert exemplars_for(item, list(reversed(pool)), 5, 4) == shots
        others = [other for other in ITEMS if other.subject == item.subject]
        assert all(exemplars_for(other, pool, 5, 4) == shots for other in others)
    assert exemplars_for(physics, pool, 5, 4) != exemplars_for(physics, pool, 5, 5)


def test_without_its_subject_the_whole_pool_serves() -> None:
    pool = make_items(200, ("law", "art"))[61:]
    shots = {exemplars_for(item, pool, 8, 0)[0] for item in ITEMS}
    assert len(shots) == 1
    assert {shot.subject for shot in exemplars_for(ITEMS[0], pool, 8, 0)} == {"law", "art"}


def test_an_item_is_never_its_own_exemplar() -> None:
    pool = make_items(6)
    for item in pool:
        shots = exemplars_for(item, pool, 5, 0)
        assert item not in shots
    renamed = make_item(
        benchmark="other",
        split="",
        subject="physics",
        question=pool[0].question,
        choices=pool[0].choices,
        answer=pool[0].answer,
    )
    assert pool[0] not in exemplars_for(renamed, pool, 5, 0)


def test_too_small_a_pool() -> None:
    item = make_items(1, ("law",))[0]
    pool = make_items(8, ("physics", "law"))[1:]
    with pytest.raises(ValueError, match="asked for 5 exemplars, the pool has 4 for subject law"):
        exemplars_for(item, pool, 5, 0)
    with pytest.raises(ValueError, match="asked for 1 exemplars, the pool has 0;"):
        exemplars_for(item, [], 1, 0)
    with pytest.raises(ValueError, match="asked for -1"):
        exemplars_for(item, [], -1, 0)
    assert exemplars_for(item, [], 0, 0) == []


def test_a_subject_that_lacks_one_exemplar_uses_all_it_has(caplog: pytest.LogCaptureFixture) -> None:
    pool = [item for item in make_items(10, ("short", "full")) if item.question != "Question number 4?"]
    exam = make_items(14, ("short", "full"))[10:]
    with caplog.at_level("WARNING"):
        shots = [exemplars_for(item, pool, 5, 0) for item in exam]
    assert [len(chosen) for chosen in shots] == [4, 5, 4, 5]
    assert [shot.subject for shot in shots[0]] == ["short"] * 4
    assert shots[0] == shots[2]
    assert caplog.messages == ["subject short has 4 exemplars, not the 5 asked for: all are used"]
    with pytest.raises(ValueError, match="asked for 6 exemplars, the pool has 4 for subject short"):
        exemplars_for(exam[0], pool, 6, 0)


def test_which_items_leak_half_all_or_a_split() -> None:
    items = [
        make_item(benchmark="b", split="ab"[n % 2], subject="", question=str(n), choices=("x", "y"), answer="A")
        for n in range(6)
    ]
    assert members(items, "half", 0) == halves(items, 0).leaked
    assert members(items, "all", 0) == tuple(sorted(item.id for item in items))
    assert members(items, "b", 7) == tuple(sorted(item.id for item in items[1::2]))
    with pytest.raises(ValueError, match=r"no item has the split 'c'; there are: a, b \(or say half, or all\)"):
        members(items, "c", 0)
    with pytest.raises(ValueError, match="every item has the split 'a', so there is no control"):
        members(items[::2], "a", 0)
