"""What ``proctor examiner`` reads from finished exams, and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.lm_examiner import plots
from evaluation.lm_examiner.embeddings import Projection
from evaluation.lm_examiner.levels import LEVELS
from evaluation.show.plate import Plate, draw
from serving.files import read_json, read_jsonl, write_json, write_jsonl
from serving.named import named_values

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
Once = Callable[[Path, dict[str, Any], Callable[[Path, Any], list[str]]], bool]
"""Does a body once in a folder, by its inputs; False where it was done already."""


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
        lines.append(f"written: {written['written']} of {written['asked']}, shortfall {written['shortfall']}")
    if classified:
        for name, metrics in classified.items():
            shares = metrics["levels"]["shares"]
            lines.append(f"{name:24} " + ", ".join(f"{level} {_percent(shares[level])}" for level in LEVELS))
        table["benchmark_levels"] = {name: metrics["levels"] for name, metrics in classified.items()}

    def drawn() -> list[Plate]:
        found = plots.marked(marked)
        found += plots.exam_written(written) if written is not None else []
        return found + ([plots.benchmark_levels(classified, LEVELS)] if classified else [])

    draw(drawn, out)
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
    found: Sequence[tuple[str, str, str]], encoder: Path, projection: Projection, *, seed: int, out: Path, once: Once
) -> list[str]:
    """Embeds, plots by examiner and by domain, and writes metrics.json; the lines of the table."""
    from evaluation.lm_examiner.embeddings import mapped
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
        figures, points = mapped(found, encoder, projection, seed=seed)
        axis = "PCA component" if projection == "pca" else "t-SNE dimension"
        title = f"{len(texts)} questions, silhouette by examiner within domain: {number(figures['within_domain'])}"
        drawn = draw(
            lambda: [
                plots.scatter("questions_by_examiner", title, points, examiners, axis=axis),
                plots.scatter("questions_by_domain", f"{len(texts)} questions", points, domains, axis=axis),
            ],
            folder,
        )
        names = [Path(file).name for one in drawn for file in one.files]
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
        f"silhouette by examiner within domain: {number(figures['within_domain'])} "
        f"({len(figures['domains'])} domains, {figures['domains_left_out']} left out)",
        f"silhouette by examiner over all: {number(figures['overall'])}; by domain: "
        f"{number(figures['by_domain_labels'])}",
    ]


def show_style(metrics: Metrics) -> None:
    print(f"{metrics['kept']} of {metrics['n']} pairs kept by {metrics['filter']}")
    for name, row in metrics["examiners"].items():
        bounds = "" if row["interval"] is None else " [{:.2f}, {:.2f}]".format(*row["interval"])
        print(
            f"  {name}: prefers the rewrite {number(row['prefers_rewrite'])}{bounds} (0.5: no preference), "
            f"n {row['n']}, inconsistency {number(row['inconsistency'])}"
        )


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"
