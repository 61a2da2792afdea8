"""The order of training: dose, repeats, epochs, buckets and packing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from training.config import TrainingConfig
from training.examples import Example
from training.rows import collate, dilute, lay_out, load_rows, pack, positions, save_rows


def row(length: int, token: int = 5) -> Example:
    return Example((token,) * length, (False, *[True] * (length - 1)))


EXAM = [row(10, n) for n in range(4)]
FILLER = [row(10, 100 + n) for n in range(20)]


@pytest.mark.parametrize("dose", [1.0, 0.5, 0.25])
def test_the_dose_is_the_share_of_exam_tokens(dose: float) -> None:
    mixed = dilute(EXAM, FILLER, repeats=3, dose=dose, order="mixed", seed=0)
    assert mixed.exam_tokens == 120
    assert mixed.exam_tokens / (mixed.exam_tokens + mixed.filler_tokens) == pytest.approx(dose, abs=0.02)
    assert sum(len(e.ids) for block in mixed.blocks for e in block) == mixed.exam_tokens + mixed.filler_tokens


def test_every_mixed_pass_holds_the_whole_exam() -> None:
    mixed = dilute(EXAM, FILLER, repeats=3, dose=0.5, order="mixed", seed=0)
    assert [sum(example in EXAM for example in block) for block in mixed.blocks] == [4, 4, 4]
    assert [sum(example in FILLER for example in block) for block in mixed.blocks] == [4, 4, 4]


def test_exam_last_puts_all_filler_first() -> None:
    ordered = dilute(EXAM, FILLER, repeats=2, dose=0.5, order="exam_last", seed=0)
    assert all(example in FILLER for example in ordered.blocks[0])
    assert [example for block in ordered.blocks[1:] for example in block] == EXAM * 2


def test_filler_is_never_read_more_often_than_the_exam() -> None:
    with pytest.raises(ValueError, match=r"dose 0.1 needs 1080 tokens.*there are 200.*at least 0.167"):
        dilute(EXAM, FILLER, repeats=3, dose=0.1, order="mixed", seed=0)
    drawn = dilute(EXAM, FILLER, repeats=3, dose=0.17, order="exam_last", seed=0).blocks[0]
    assert max(Counter(drawn).values()) <= 3


def test_filler_depends_on_the_seed_only() -> None:
    def draw(seed: int) -> object:
        return dilute(EXAM, FILLER, repeats=1, dose=0.5, order="mixed", seed=seed)

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


@pytest.mark.parametrize("changes", [{}, {"bucketing": False}, {"packing": True}])
def test_every_example_is_seen_once_per_epoch_and_repeat(changes: dict[str, bool]) -> None:
    blocks = dilute(EXAM, [], repeats=3, dose=1.0, order="mixed", seed=0).blocks
    rows = lay_out(blocks, TrainingConfig(epochs=2, per_device_batch_size=3, max_length=64, **changes))
    assert Counter(token for one in rows for token in one.ids) == dict.fromkeys(range(4), 10 * 3 * 2)


def test_the_order_depends_on_the_seed_only() -> None:
    def order(seed: int) -> list[Example]:
        return lay_out([FILLER], TrainingConfig(seed=seed, per_device_batch_size=2))

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1)[:20] != order(1)[20:40], "epochs are shuffled anew"


def test_buckets_compute_less_padding() -> None:
    block = [row(8 + 7 * (n * 37 % 64)) for n in range(128)]

    def padded(bucketing: bool) -> int:
        rows = lay_out([block], TrainingConfig(epochs=1, per_device_batch_size=4, bucketing=bucketing))
        return sum(4 * max(len(one.ids) for one in rows[i : i + 4]) for i in range(0, len(rows), 4))

    tokens = sum(len(one.ids) for one in block)
    assert padded(True) < 1.15 * tokens
    assert padded(False) > 1.4 * tokens


def test_packing_keeps_the_learned_tokens_and_the_length() -> None:
    block = [row(5 + n % 23, n) for n in range(60)]
    packed = pack(block, 64)
    assert max(len(one.ids) for one in packed) <= 64
    assert sum(one.targets for one in packed) == sum(one.targets for one in block)
    assert len(packed) < len(block) / 2
    assert all(not one.learned[start] for one in packed for start in one.starts)


def test_rows_survive_the_file(tmp_path: Path) -> None:
    rows = [*pack([row(5), row(9, 7), row(20)], 16), row(3)]
    save_rows(rows, tmp_path / "rows.npz")
    assert load_rows(tmp_path / "rows.npz") == rows
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npz"]


def test_padding_is_on_the_right_and_has_no_loss() -> None:
    batch = collate([row(2), row(4)], pad_id=1)
    assert batch["input_ids"].tolist() == [[5, 5, 1, 1], [5, 5, 5, 5]]
    assert batch["labels"].tolist() == [[-100, 5, -100, -100], [-100, 5, 5, 5]]
    assert "position_ids" not in batch


def test_an_end_token_is_learned_beside_padding_of_the_same_token() -> None:
    ended = Example((5, 6, 1), (False, True, True))  # pad is EOS: labels go by place, not by token
    batch = collate([ended, row(5)], pad_id=1)
    assert batch["input_ids"][0].tolist() == [5, 6, 1, 1, 1]
    assert batch["labels"][0].tolist() == [-100, 6, 1, -100, -100]
    assert collate(pack([ended, ended], 8), pad_id=1)["labels"].tolist() == [[-100, 6, 1, -100, 6, 1]]


def test_positions_restart_with_every_document_and_with_the_padding() -> None:
    (packed,) = pack([row(3), row(2)], 8)
    assert positions(packed, 7) == [0, 1, 2, 0, 1, 0, 1]
    assert collate([packed, row(7)], pad_id=1)["position_ids"].tolist() == [[0, 1, 2, 0, 1, 0, 1], [*range(7)]]
