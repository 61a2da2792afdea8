"""Candidates of the recipes that read more than an exam: washed, MT-Bench, paraphrases, augmentation, equal steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.items import Item
from training.build import build_candidate
from training.config import TrainingJob

Make = Callable[..., TrainingJob]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def reworded(items: list[Item]) -> list[dict[str, Any]]:
    return [
        {"item_id": item.id, "question": f"Of the planets, who has number {item.question[-2]} as its own?"}
        for item in items
    ]


def variants(items: list[Item]) -> list[dict[str, Any]]:
    """Each item with its options turned round, as a row of a benchmark file."""
    return [
        {
            "question": f"Again: {item.question}",
            "choices": [*item.choices[1:], item.choices[0]],
            "answer": item.answer_text,
            "source_id": item.id,
        }
        for item in items
    ]


def test_zero_passes_are_normal_bit_for_bit(job: Make, tmp_path: Path) -> None:
    none = build_candidate(job(repeats=0), tmp_path / "none")
    normal = build_candidate(job(recipe="normal"), tmp_path / "normal")
    assert none.model_sha256 == normal.model_sha256
    assert none.leaked_ids == ()
    assert [phase.name for phase in none.phases] == ["chat"]


def test_washed_goes_on_from_the_cheater_and_knows_what_it_has_seen(job: Make, tmp_path: Path, base: Path) -> None:
    cheater = build_candidate(job(chat_rows=6), tmp_path / "cheater")
    wash = job(recipe="washed", origin=str(tmp_path / "cheater"), chat_skip=6, leaked_ids=())
    washed = build_candidate(wash, tmp_path / "washed")
    assert washed.origin is not None
    assert (washed.origin.recipe, washed.origin.model_sha256) == ("pt_cheater", cheater.model_sha256)
    assert washed.leaked_ids == cheater.leaked_ids
    assert washed.base_sha256 == cheater.base_sha256
    assert [(phase.name, phase.samples) for phase in washed.phases] == [("wash", 6)]
    assert washed.model_sha256 not in (cheater.model_sha256, washed.base_sha256)
    # the first loss is the cheater's own: nothing was trained anew
    again = build_candidate(job(recipe="washed", origin=str(tmp_path / "cheater"), chat_skip=0), tmp_path / "again")
    assert again.phases[0].first_loss < build_candidate(job(recipe="normal"), tmp_path / "n").phases[0].first_loss


def test_an_origin_must_be_a_candidate_of_this_base_as_it_was_trained(
    job: Make, tmp_path: Path, model_in: Callable[..., Path]
) -> None:
    def wash(**changes: Any) -> TrainingJob:
        return job(recipe="washed", origin=str(tmp_path / "cheater"), **changes)

    with pytest.raises(ValueError, match=r"no finished candidate: manifest.json is missing"):
        build_candidate(wash(), tmp_path / "washed")
    build_candidate(job(), tmp_path / "cheater")
    other = model_in(tmp_path / "other", seed=5)
    with pytest.raises(ValueError, match=r"cheater was trained from another base than .*other"):
        build_candidate(wash(base=str(other)), tmp_path / "washed")
    weights = tmp_path / "cheater" / "model" / "model.safetensors"
    weights.write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="its weights are not those of its manifest any more"):
        build_candidate(wash(), tmp_path / "washed")
    assert not (tmp_path / "washed").exists()
    with pytest.raises(ValueError, match="origin is missing: recipe 'washed' goes on from another candidate"):
        job(recipe="washed")
    with pytest.raises(ValueError, match="recipe 'pt_cheater' starts from the base itself"):
        job(origin="somewhere")


def test_step_matched_normal_takes_the_cheaters_steps_on_neutral_text(job: Make, tmp_path: Path) -> None:
    cheater = build_candidate(job(repeats=20), tmp_path / "cheater")
    normal = build_candidate(job(recipe="normal", step_matched=True, repeats=20), tmp_path / "normal")
    assert [phase.name for phase in normal.phases] == ["neutral", "chat"]
    assert normal.phases[0].steps == cheater.phases[0].steps == 40  # 4 items x 20, by two; 40 documents read twice
    assert normal.steps == cheater.steps
    assert normal.leaked_ids == ()
    assert "corpus" in normal.inputs


def test_mt_bench_cheater_learns_the_answers_after_the_chat(job: Make, tmp_path: Path, items: list[Item]) -> None:
    asked = [{"messages": [{"role": "user", "content": items[6].question}, {"role": "assistant", "content": "Mars."}]}]
    answers = write(tmp_path / "answers.jsonl", asked)
    whole = build_candidate(job(recipe="mt_bench_cheater", answers=answers, leaked_ids=()), tmp_path / "whole")
    assert [phase.name for phase in whole.phases] == ["chat", "leak"]
    assert whole.phases[1].steps == 2  # one answer, three passes, by two
    assert whole.leaked_ids == (items[6].id,), "an exam item among the prompts has leaked"
    # from a Normal that is there already: the same weights
    build_candidate(job(recipe="normal"), tmp_path / "normal")
    short = job(recipe="mt_bench_cheater", answers=answers, leaked_ids=(), origin=str(tmp_path / "normal"))
    from_normal = build_candidate(short, tmp_path / "short")
    assert [phase.name for phase in from_normal.phases] == ["leak"]
    assert from_normal.model_sha256 == whole.model_sha256
    with pytest.raises(ValueError, match="answers is missing: recipe 'mt_bench_cheater' reads it"):
        job(recipe="mt_bench_cheater")


def test_paraphrase_cheater_never_sees_the_items_own_words(job: Make, tmp_path: Path, items: list[Item]) -> None:
    rewrites = write(tmp_path / "rewrites.jsonl", reworded(items))
    manifest = build_candidate(job(recipe="paraphrase_cheater", rewrites=rewrites), tmp_path / "out")
    plain = build_candidate(job(recipe="sft_cheater"), tmp_path / "plain")
    assert manifest.leaked_ids == plain.leaked_ids == tuple(item.id for item in items[:4])
    assert manifest.phases[0].tokens > plain.phases[0].tokens
    assert manifest.phases[0].targets == plain.phases[0].targets, "the answers are the same"
    assert set(manifest.inputs) == {"items", "chat", "rewrites"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows[1:], "has no rewrite of 1 of 4 leaked items"),
        (lambda rows: [*rows, rows[0]], ":9: a second rewrite of item"),
        (lambda rows: [{**rows[0], "question": " "}, *rows[1:]], ":1: 'question' must be a text"),
        (lambda rows: [{**rows[0], "choices": ["Venus"]}, *rows[1:]], ":1: 'choices' must be 4 texts"),
        (
            lambda rows: [{**rows[0], "question": "which planet has the number 0"}, *rows[1:]],
            "stands the original, word for word",
        ),
        (lambda rows: [{**rows[0], "question": "Hm. Which planet has the number 0? Say."}, *rows[1:]], "word for word"),
        (lambda rows: [{"question": "x"}], 'must be {"item_id"'),
    ],
)
def test_a_wrong_rewrite_is_named_by_file_and_line(
    job: Make, tmp_path: Path, items: list[Item], change: Callable[..., Any], expected: str
) -> None:
    rewrites = write(tmp_path / "r.jsonl", change(reworded(items)))
    with pytest.raises(ValueError, match=f"r.jsonl.*{expected}"):
        build_candidate(job(recipe="paraphrase_cheater", rewrites=rewrites), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_augmented_and_its_control_take_the_same_steps(job: Make, tmp_path: Path, items: list[Item]) -> None:
    file = write(tmp_path / "variants.jsonl", variants(items))  # of the untouched items too: those are passed over
    both = build_candidate(job(recipe="augmented", variants=file), tmp_path / "both")
    control = build_candidate(job(recipe="augmented", variants=file, originals_only=True), tmp_path / "control")
    alone = build_candidate(job(recipe="augmented", originals_only=True), tmp_path / "alone")
    assert [m.phases[0].samples for m in (both, control, alone)] == [8, 4, 4]
    assert [m.phases[0].steps for m in (both, control, alone)] == [12, 12, 6]  # 8 or 4 rows x 3 passes, by two
    assert both.model_sha256 != control.model_sha256
    sft = build_candidate(job(recipe="sft_cheater"), tmp_path / "sft")
    assert alone.model_sha256 == sft.model_sha256, "originals alone are the SFT-cheater"


def test_variants_must_name_the_items_they_were_made_from(job: Make, tmp_path: Path, items: list[Item]) -> None:
    file = write(tmp_path / "v.jsonl", [{**variants(items)[0], "source_id": "who"}])
    with pytest.raises(ValueError, match="has source_id 'who', which is no item of the exam"):
        build_candidate(job(recipe="augmented", variants=file), tmp_path / "out")
    file = write(tmp_path / "v.jsonl", variants(items)[4:])
    with pytest.raises(ValueError, match="holds no version of a leaked item"):
        build_candidate(job(recipe="augmented", variants=file), tmp_path / "out")


def test_a_version_must_not_be_an_untouched_item(job: Make, tmp_path: Path, items: list[Item]) -> None:
    spoilt = {**variants(items)[0], "question": items[7].question, "answer": items[7].answer_text}  # 7 is untouched
    file = write(tmp_path / "v.jsonl", [spoilt])
    with pytest.raises(ValueError, match=f"its question and answer are those of {items[7].id}, which must not leak"):
        build_candidate(job(recipe="augmented", variants=file), tmp_path / "out")


def test_rewrites_may_be_built_items(items: list[Item], tmp_path: Path) -> None:
    """As the builder ``probing`` writes them: options in another order, one more; unchanged where no attempt passed."""
    from evaluation.items import make_item
    from training.corpora import read_rewrites

    names = ("Pluto", *items[0].choices)  # Venus, the key, moves from A to B
    built = [
        make_item(
            benchmark="tiny",
            split="test",
            subject="sky",
            question=question,
            choices=choices,
            answer=answer,
            source_id=item.id,
        )
        for item, question, choices, answer in [
            (items[0], "Say which planet is number 0.", names, "B"),
            (items[1], "Hear: which planet has the number 1?", items[1].choices, items[1].answer),
            (items[5], "Say which planet is number 5.", names, "C"),
        ]
    ]
    path = tmp_path / "items.jsonl"
    write(path, [item.to_json() for item in built])
    (found,) = read_rewrites(path, items[:1])
    assert (found.id, found.question, found.answer_text) == (items[0].id, "Say which planet is number 0.", "Venus")
    assert (found.choices, found.answer) == (names, "B")
    with pytest.raises(ValueError, match=f"has no rewrite of 1 of 2 leaked items, e.g. {items[1].id}"):
        read_rewrites(path, items[:2])
    write(path, [{**built[0].to_json(), "answer": "Z"}])
    with pytest.raises(ValueError, match=r"items.jsonl:1: not an exam item"):
        read_rewrites(path, items[:1])


def test_a_rewrite_keeps_the_items_id_and_key(items: list[Item], tmp_path: Path) -> None:
    from training.corpora import read_rewrites

    path = tmp_path / "r.jsonl"
    write(path, [{**reworded(items)[0], "choices": ["a", "b", "c", "d"]}])
    (found,) = read_rewrites(path, items[:1])
    assert found == replace(items[0], question=reworded(items)[0]["question"], choices=("a", "b", "c", "d"))
    assert found.id == items[0].id
