"""What people say beside the examiner: sheets to rate, rank and check on, and what filled ones come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.items import Item
from evaluation.lm_examiner.results import Once, number, read_metrics
from serving.files import read_json, read_jsonl, write_json, write_jsonl, write_text

PUBLISHED = {"examiner": (0.633, 0.554, 0.853), "bleu": (0.318, 0.241, None)}
"""The paper's Spearman, Kendall and pairwise accuracy: GPT-4 as examiner, and BLEU."""


def write_equivalence_sheet(folder: Path) -> Path:
    """The sheet on which people say whether original and rewrite say the same; a filled one is never overwritten."""
    from evaluation.human_rating.sheet import sheet_text

    path = folder / "equivalence.csv"
    if not path.is_file():
        header = ("item_id", "question", "original", "rewrite")
        records = read_jsonl(folder / "records.jsonl")
        write_text(path, sheet_text(header, ([record[name] for name in header] for record in records), ["same"]))
    return path


def check_references(built: Path, sheet: Path, *, number: int, seed: int) -> str:
    """Writes the sheet of reference answers, or reads a filled one: what to say of it."""
    from evaluation.human_rating.sheet import YES_NO, read_table, sheet_text
    from evaluation.lm_examiner.build import sample_rows
    from evaluation.statistics import wilson

    if not sheet.exists():
        if not (built / "records.jsonl").is_file():
            raise ValueError(f"{built} holds no records.jsonl; give the folder of a built exam")
        records = read_jsonl(built / "records.jsonl")
        if any(not isinstance(record, dict) or not {"domain", "questions"} <= set(record) for record in records):
            raise ValueError(f"{built}: the records are not of 'proctor build lm_examiner'")
        rows = sample_rows(records, number, seed)
        if not rows:
            raise ValueError(f"the exam in {built} has no questions")
        header = ("domain", "question", "answer")
        write_text(sheet, sheet_text(header, ([row[name] for name in header] for row in rows), ["right"]))
        return f"{len(rows)} reference answers: {sheet}; fill in 'right' with yes or no and call again"
    _, filled = read_table(sheet, "right")
    scale = YES_NO.also(right=True, wrong=False)
    said = [mark for place, row in filled if (mark := scale.read(row["right"], place, "right")) is not None]
    if not said:
        raise ValueError(f"{sheet}: no cell of the column 'right' is filled in")
    low, high = wilson(sum(said), len(said)) or (0.0, 1.0)
    share = (
        f"{sum(said)} of {len(said)} reference answers are right ({sum(said) / len(said):.3f} [{low:.3f}, {high:.3f}])"
    )
    return f"{share}; {len(filled) - len(said)} not filled in. The paper: 100 of 100"


def people_on_style(folder: Path, sheet: Path, *, seed: int) -> dict[str, Any]:
    """The preferences over the pairs that people call the same; writes metrics_people.json."""
    from evaluation.human_rating.sheet import YES_NO, read_sheet
    from evaluation.lm_examiner.style_bias import preferences

    read_metrics(folder, "style_bias")
    records = read_jsonl(folder / "records.jsonl")
    known = {record["item_id"] for record in records}
    scale = YES_NO.also(same=True, different=False)
    rows = read_sheet(sheet, known, "same", column="item_id", of=str(folder))[1]
    same = {row.name: scale.read(row.cells["same"], row.place, "same") for row in rows}
    kept = [name for name, answer in same.items() if answer]
    blank = sum(answer is None for answer in same.values())
    figures = {"n": len(records), "filter": "people", "blank": blank, **preferences(records, kept, seed=seed)}
    write_json(folder / "metrics_people.json", figures)
    return figures


def export_sheets(
    exams: Mapping[str, Path],
    items_of: Callable[[Path], Mapping[str, Item]],
    out: Path,
    *,
    annotators: Sequence[str],
    limit: int | None,
    seed: int,
) -> int:
    """ratings.csv, rankings.csv and key.jsonl; the number of answers. ValueError if ``out`` holds something."""
    from evaluation.human_rating.sheet import check_annotators
    from evaluation.lm_examiner.annotation import key_rows, ranking_sheet, rating_sheet

    check_annotators(annotators, taken=("id", "question", "answer"))
    if not exams:
        raise ValueError("whose answers? give --exam NAME=FOLDER")
    records: dict[str, list[Any]] = {}
    references: dict[str, str] = {}
    for name, folder in exams.items():
        read_metrics(folder, "lm_examiner")
        records[name] = read_jsonl(folder / "records.jsonl")
        references |= {key: item.answer for key, item in items_of(folder).items()}
    rows = key_rows(records, references, seed)
    if limit is not None:
        chosen = list(dict.fromkeys(row["item_id"] for row in rows))[:limit]
        rows = [row for row in rows if row["item_id"] in chosen]
    if not rows:
        raise ValueError("there is no question that all of these candidates answered")
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"--out {out} is not empty; a filled sheet is never overwritten: choose another folder")
    write_text(out / "ratings.csv", rating_sheet(rows, annotators))
    write_text(out / "rankings.csv", ranking_sheet(rows))
    write_jsonl(out / "key.jsonl", rows)
    return len(rows)


def measure_agreement(
    key: Path,
    ratings: Path | None,
    rankings: Path | None,
    encoder: Path | None,
    layer: int | None,
    *,
    seed: int,
    out: Path,
    once: Once,
) -> list[str]:
    """Scores of the key's answers against people; writes metrics.json. The lines of the table."""
    from evaluation.lm_examiner.annotation import agreement, read_rankings, read_ratings
    from evaluation.text_metrics import bert_scores, text_scores
    from serving.files import readable
    from serving.model.fingerprint import file_hash

    if not key.is_file():
        raise ValueError(f"there is no key {key}")
    rows = readable(lambda: read_jsonl(key), key)
    columns = {"id", "item_id", "place", "answer", "reference", "examiner"}
    if not rows or any(not isinstance(row, dict) or not columns <= set(row) for row in rows):
        raise ValueError(f"{key} is no key of 'proctor examiner sheet'")
    sizes = {row["item_id"]: sum(other["item_id"] == row["item_id"] for other in rows) for row in rows}
    given, null_ratings = read_ratings(ratings, [row["id"] for row in rows]) if ratings else ({}, 0)
    ranked, null_rankings = read_rankings(rankings, sizes) if rankings else ({}, 0)
    if not any(given.values()) and not ranked:
        raise ValueError("no cell of the sheets is filled in")
    inputs: dict[str, Any] = {
        "command": "examiner agree",
        "files": [None if file is None else file_hash(file) for file in (key, ratings, rankings)],
        "encoder": None if encoder is None else [str(encoder.resolve()), layer],
        "seed": seed,
    }

    def body(folder: Path, report: Any) -> list[str]:
        references, answers = [row["reference"] for row in rows], [row["answer"] for row in rows]
        overlap, how = text_scores(references, answers)
        scores: dict[str, Sequence[float | None]] = {"examiner": [row["examiner"] for row in rows]}
        scores |= {name: overlap[name] for name in ("rouge1", "rouge2", "rougeL", "bleu")}
        if encoder is not None:
            scores["bertscore"], how["bertscore"] = bert_scores(references, answers, folder=encoder, layer=layer)
        figures = {
            "answers": len(rows),
            "rated": sum(bool(values) for values in given.values()),
            "null_ratings": null_ratings,
            "ranked_questions": len(ranked),
            "null_rankings": null_rankings,
            "scores": agreement(rows, scores, given, ranked, seed=seed),
            "text_metrics": how,
            "published": PUBLISHED,
        }
        write_json(folder / "metrics.json", figures)
        return ["metrics.json"]

    once(out, inputs, body)
    figures = read_json(out / "metrics.json")
    lines = [
        f"{figures['rated']} of {figures['answers']} answers rated, {figures['ranked_questions']} questions ranked"
    ]
    for name, row in figures["scores"].items():
        cells = [f"{kind} {number(row[kind]['value'])}" for kind in ("spearman", "kendall", "pairwise")]
        lines.append(f"  {name:10} {'  '.join(cells)}  n {row['n']}")
    return lines
