"""What ``proctor examiner`` reads from finished exams, and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.lm_examiner.embeddings import Projection
from evaluation.lm_examiner.levels import LEVELS
from proctor.report import examiner_figures as drawn
from serving.files import read_json, read_jsonl, write_json, write_jsonl, write_text
from serving.named import named_values

PUBLISHED = {"examiner": (0.633, 0.554, 0.853), "bleu": (0.318, 0.241, None)}
"""The paper's Spearman, Kendall and pairwise accuracy: GPT-4 as examiner, and BLEU."""
PUBLISHED_FULL_MARKS = {
    "BLOOMZ": (20.7, 25.5, 17.5),
    "Flan-T5": (17.0, 26.0, 15.1),
    "Flan-UL2": (15.5, 24.8, 17.0),
    "GLM-130B": (14.9, 33.3, 18.6),
    "LLaMA-13B": (29.5, 54.3, 43.1),
    "LLaMA-65B": (38.5, 62.9, 53.2),
    "Vicuna": (96.5, None, 92.4),
    "ChatGPT": (99.3, None, 100.0),
}
"""The paper's full marks in percent: 0-shot, 5-shot, second round; GPT-4 as the examiner."""

Metrics = Mapping[str, Any]


def folders(given: Sequence[str], flag: str) -> dict[str, Path]:
    """``NAME=FOLDER`` as a mapping. ValueError for another form or a repeated name."""
    return {name: Path(path) for name, path in named_values(given, flag).items()}


def read_metrics(folder: Path, protocol: str | None) -> dict[str, Any]:
    """The metrics of a finished call. ValueError if there are none, or they are another protocol's."""
    if not (folder / "metrics.json").is_file():
        raise ValueError(f"{folder} holds no metrics.json; give the folder of a finished call")
    inputs = folder / "inputs.json"
    said = read_json(inputs).get("protocol") if inputs.is_file() else protocol
    if protocol is not None and said != protocol:
        raise ValueError(f"{folder} is of the protocol {said}, and {protocol} is needed")
    found: dict[str, Any] = read_json(folder / "metrics.json")
    return found


def draw_exams(
    marked: Mapping[str, Metrics],
    shots: Mapping[str, Metrics],
    written: Metrics | None,
    classified: Mapping[str, Metrics],
    out: Path,
) -> list[str]:
    """All figures that these results allow; the lines of the table. Writes table.json beside them."""
    from evaluation.lm_examiner.marks import few_shot_gain

    lines: list[str] = []
    table: dict[str, Any] = {}
    if marked:
        drawn.radar("radar", out, marked)
        for name, key in (("levels", "levels"), ("domains", "domains")):
            groups = {label: _shares(metrics[key]) for label, metrics in marked.items()}
            order = list(dict.fromkeys(group for metrics in marked.values() for group in metrics[key]))
            drawn.grouped_bars(name, out, groups, label="share of full marks (95% interval)", order=order)
        for label, metrics in marked.items():
            table[label] = {"zero_shot": metrics["full_marks_share"], "second_round": metrics["second_round_share"]}
            if label in shots:
                table[label]["few_shot"] = shots[label]["full_marks_share"]
            cells = [f"{key} {_percent(value)}" for key, value in table[label].items()]
            lines.append(f"{label:24} full marks: {', '.join(cells)}, n {metrics['n']}, unmarked {metrics['unmarked']}")
    if shots:
        names = list(shots)
        gains = few_shot_gain([marked[n]["levels"] for n in names], [shots[n]["levels"] for n in names])
        table["few_shot_gain"] = gains
        lines += [
            f"few-shot gain, {level}: {_percent(row['gain'])} ({row['models']} models)" for level, row in gains.items()
        ]
    if written is not None:
        drawn.bars("question_words", out, written["question_words"], label="questions")
        drawn.bars("written_levels", out, written["levels"]["counts"], label="questions")
        drawn.bars("written_domains", out, written["domains"], label="questions", upright=False)
        lines.append(f"written: {written['written']} of {written['asked']}, shortfall {written['shortfall']}")
    if classified:
        sets = {
            name: {level: {"value": value} for level, value in metrics["levels"]["shares"].items()}
            for name, metrics in classified.items()
        }
        drawn.grouped_bars("benchmark_levels", out, sets, label="share of questions", order=LEVELS)
        for name, metrics in classified.items():
            shares = metrics["levels"]["shares"]
            lines.append(f"{name:24} " + ", ".join(f"{level} {_percent(shares[level])}" for level in LEVELS))
        table["benchmark_levels"] = {name: metrics["levels"] for name, metrics in classified.items()}
    write_json(out / "table.json", {"candidates": table, "published_full_marks": PUBLISHED_FULL_MARKS})
    return lines


def question_sets(given: Sequence[str], peer: Path | None) -> list[tuple[str, str, str]]:
    """(examiner or set, domain, question) of named files and of a peer examination. ValueError for none."""
    from evaluation import benchmarks
    from serving.files import readable

    found: list[tuple[str, str, str]] = []
    for name, path in folders(given, "--benchmark").items():
        items = readable(lambda path=path: benchmarks.load("jsonl", path, duplicates="report"), path)  # type: ignore[misc]
        found += [(name, item.subject or "(none)", item.question) for item in items]
    if peer is not None:
        read_metrics(peer, "peer_examination")
        for record in read_jsonl(peer / "records.jsonl"):
            found += [(record["examiner"], record["domain"], row["question"]) for row in record["questions"]]
    if len(found) < 3:
        raise ValueError(
            f"there are {len(found)} questions; give --benchmark NAME=FILE or --peer FOLDER with at least 3"
        )
    return found


def embed_questions(
    found: Sequence[tuple[str, str, str]], encoder: Path, projection: Projection, *, seed: int, out: Path
) -> list[str]:
    """Embeds, plots by examiner and by domain, and writes metrics.json; the lines of the table."""
    from evaluation.lm_examiner.embeddings import embed, project, silhouettes
    from proctor.run_folder.single import once
    from serving.model.fingerprint import file_hash

    inputs: dict[str, Any] = {
        "command": "examiner embed",
        "questions": [list(row) for row in found],
        "encoder": {file.name: file_hash(file) for file in sorted(encoder.glob("*.safetensors"))},
        "projection": projection,
        "seed": seed,
    }

    def body(folder: Path, report: Any) -> list[str]:
        examiners, domains, texts = (list(column) for column in zip(*found, strict=True))
        vectors = embed(texts, encoder)
        points = project(vectors, projection, seed=seed).tolist()
        figures = silhouettes(vectors, examiners, domains)
        axis = "PCA component" if projection == "pca" else "t-SNE dimension"
        title = f"{len(texts)} questions, silhouette by examiner within domain: {_number(figures['within_domain'])}"
        names = drawn.scatter("questions_by_examiner", folder, points, examiners, title=title, axis=axis)
        names += drawn.scatter(
            "questions_by_domain", folder, points, domains, title=f"{len(texts)} questions", axis=axis
        )
        rows = [
            {"examiner": e, "domain": d, "question": t, "x": p[0], "y": p[1]}
            for (e, d, t), p in zip(found, points, strict=True)
        ]
        write_jsonl(folder / "records.jsonl", rows)
        write_json(folder / "metrics.json", figures)
        return ["records.jsonl", "metrics.json", *names]

    once(out, inputs, body)
    figures = read_json(out / "metrics.json")
    return [
        f"silhouette by examiner within domain: {_number(figures['within_domain'])} "
        f"({len(figures['domains'])} domains, {figures['domains_left_out']} left out)",
        f"silhouette by examiner over all: {_number(figures['overall'])}; by domain: "
        f"{_number(figures['by_domain_labels'])}",
    ]


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


def show_style(metrics: Metrics) -> None:
    print(f"{metrics['kept']} of {metrics['n']} pairs kept by {metrics['filter']}")
    for name, row in metrics["examiners"].items():
        bounds = "" if row["interval"] is None else " [{:.2f}, {:.2f}]".format(*row["interval"])
        print(
            f"  {name}: prefers the rewrite {_number(row['prefers_rewrite'])}{bounds} (0.5: no preference), "
            f"n {row['n']}, inconsistency {_number(row['inconsistency'])}"
        )


def export_sheets(
    exams: Mapping[str, Path], out: Path, *, annotators: Sequence[str], limit: int | None, seed: int
) -> int:
    """ratings.csv, rankings.csv and key.jsonl; the number of answers. ValueError if ``out`` holds something."""
    from evaluation.human_rating.sheet import check_annotators
    from evaluation.lm_examiner.annotation import key_rows, ranking_sheet, rating_sheet
    from proctor.run_folder.finished import read_exam_items

    check_annotators(annotators, taken=("id", "question", "answer"))
    if not exams:
        raise ValueError("whose answers? give --exam NAME=FOLDER")
    records: dict[str, list[Any]] = {}
    references: dict[str, str] = {}
    for name, folder in exams.items():
        read_metrics(folder, "lm_examiner")
        records[name] = read_jsonl(folder / "records.jsonl")
        references |= {key: item.answer for key, item in read_exam_items(folder)[1].items()}
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
) -> list[str]:
    """Scores of the key's answers against people; writes metrics.json. The lines of the table."""
    from evaluation.lm_examiner.annotation import agreement, read_rankings, read_ratings
    from evaluation.text_metrics import bert_scores, text_scores
    from proctor.run_folder.single import once
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
        cells = [f"{kind} {_number(row[kind]['value'])}" for kind in ("spearman", "kendall", "pairwise")]
        lines.append(f"  {name:10} {'  '.join(cells)}  n {row['n']}")
    return lines


def _shares(parts: Mapping[str, Metrics]) -> dict[str, Any]:
    return {
        name: {"value": part["full_marks_share"], "interval": part["full_marks_share_interval"]}
        for name, part in parts.items()
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"
