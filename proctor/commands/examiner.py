"""examiner: what surrounds exams by a model: figures, leakage, bias, agreement with people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.commands.options import Drawn, Dtype, Engine, Length, Options, Out, Schedule, Seed

app = typer.Typer(
    name="examiner",
    help="Figures of exams by a model, old questions, bias, agreement with people.",
    no_args_is_help=True,
)

Exams = Annotated[list[str], typer.Option("--exam", help="NAME=FOLDER of 'proctor evaluate' (repeatable).")]
Benchmarks = Annotated[list[str], typer.Option("--benchmark", help="NAME=FILE of questions (repeatable).")]


@app.command()
def figures(
    out: Out,
    exam: Exams = [],  # noqa: B006
    few_shot: Annotated[
        list[str], typer.Option(help="NAME=FOLDER of the same candidate, examined with exemplars (repeatable).")
    ] = [],  # noqa: B006
    built: Annotated[Path | None, typer.Option(help="Folder of 'proctor build lm_examiner'.")] = None,
    levels: Annotated[
        list[str], typer.Option(help="NAME=FOLDER of 'proctor evaluate --protocol question_levels' (repeatable).")
    ] = [],  # noqa: B006
) -> None:
    """Draw radar, levels, domains and question words of finished exams; full marks and the few-shot gain in a table."""
    from evaluation.lm_examiner.results import draw_exams, folders, read_metrics

    marked = {name: read_metrics(path, "lm_examiner") for name, path in folders(exam, "--exam").items()}
    shots = {name: read_metrics(path, "lm_examiner") for name, path in folders(few_shot, "--few-shot").items()}
    classified = {name: read_metrics(path, "question_levels") for name, path in folders(levels, "--levels").items()}
    unknown = [name for name in shots if name not in marked]
    if unknown:
        raise ValueError(f"--few-shot {unknown[0]}: there is no --exam of that name, without exemplars")
    if not (marked or built or classified):
        raise ValueError("what is to be drawn? give --exam NAME=FOLDER, --built FOLDER or --levels NAME=FOLDER")
    written = read_metrics(built, None) if built is not None else None
    if written is not None and "question_words" not in written:
        raise ValueError(f"--built {built}: give a folder of 'proctor build lm_examiner'")
    for line in draw_exams(marked, shots, written, classified, out):
        print(line)
    print(f"figures: {out}")


@app.command()
def references(
    built: Annotated[Path, typer.Argument(help="Folder of 'proctor build lm_examiner' (or a stage's).")],
    sheet: Annotated[Path, typer.Option(help="CSV file: written if it isn't there, else read back.")],
    number: Annotated[int, typer.Option(min=1, help="So many reference answers, drawn with the seed.")] = 100,
    seed: Seed = 0,
) -> None:
    """Have people check the examiner's own answers: a sheet to fill in, then the share that is right."""
    from evaluation.lm_examiner.people import check_references

    print(check_references(built, sheet, number=number, seed=seed))


@app.command()
def leakage(
    benchmark: Annotated[Path, typer.Option(help="File of questions (jsonl), as 'proctor build' writes it.")],
    corpus: Annotated[Path, typer.Option(help="Text or JSONL file, or a folder of them.")],
    out: Out,
    format: Annotated[str, typer.Option(help="See 'proctor list benchmarks'.")] = "jsonl",
    seed: Seed = 0,
) -> None:
    """Search each question in a corpus (BM25) and compare it with the best hit (ROUGE-L)."""
    from evaluation import benchmarks
    from evaluation.lm_examiner.leakage import read_corpus, search
    from proctor.run_folder.single import once
    from serving.files import read_json, readable, write_json, write_jsonl
    from serving.model.fingerprint import file_hash

    items = readable(lambda: benchmarks.load(format, benchmark), benchmark)
    passages = readable(lambda: read_corpus(corpus), corpus)
    files = sorted(corpus.rglob("*")) if corpus.is_dir() else [corpus]
    inputs: dict[str, Any] = {
        "command": "examiner leakage",
        "items": [item.id for item in items],
        "corpus": [file_hash(file) for file in files if file.is_file()],
        "seed": seed,
    }

    def body(folder: Path, report: Any) -> list[str]:
        found, rows = search(items, passages, seed=seed)
        write_jsonl(folder / "records.jsonl", rows)
        write_json(folder / "metrics.json", found)
        return ["records.jsonl", "metrics.json"]

    once(out, inputs, body)
    found = read_json(out / "metrics.json")
    low, high = found["interval"] or (0.0, 0.0)
    print(
        f"mean ROUGE-L with the best hit: {found['mean_rouge_l']:.3f} [{low:.3f}, {high:.3f}], n {found['n']}, "
        f"{found['passages']} passages, {found['same_question']} above 0.7, {found['without_hit']} without a hit"
    )
    for row in found["closest"][:3]:
        print(f"  {row['rouge_l']:.3f}  {row['question'][:70]!r}  ~  {row['hit'][:70]!r}")


@app.command()
def embed(
    benchmark: Benchmarks,
    out: Out,
    encoder: Annotated[str, typer.Option(help="sentence-transformers folder, or 'minilm' (package).")] = "minilm",
    projection: Annotated[str, typer.Option(help="pca or tsne.")] = "tsne",
    peer: Annotated[Path | None, typer.Option(help="Folder of 'proctor peer': its examiners' questions, too.")] = None,
    seed: Seed = 0,
) -> None:
    """Question bias: embed the questions of each examiner, plot them, and give the silhouette within domains."""
    from evaluation.lm_examiner.embeddings import encoder_folder
    from evaluation.lm_examiner.results import embed_questions, question_sets
    from proctor.commands.options import one_of
    from proctor.run_folder.single import once

    one_of("--projection", projection, ("pca", "tsne"))
    found = question_sets(benchmark, peer)
    folder = encoder_folder(encoder)
    for line in embed_questions(found, folder, projection, seed=seed, out=out, once=once):  # type: ignore[arg-type]
        print(line)
    print(f"figures: {out}")


@app.command()
def style(
    writer: Annotated[str, typer.Option(help="Model whose answers are rewritten.")],
    stylist: Annotated[str, typer.Option(help="Model in whose style.")],
    judge: Annotated[str, typer.Option(help="Model that says whether both say the same (a stand-in for people).")],
    examiner: Annotated[list[str], typer.Option(help="NAME=DIR of an examiner (repeatable).")],
    benchmark: Annotated[Path, typer.Option(help="Questions (jsonl).")],
    out: Out,
    limit: Drawn = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    max_length: Length = None,
    schedule: Schedule = "lockstep",
    option: Options = [],  # noqa: B006
) -> None:
    """Style bias: rewrite answers in another model's style, and see which version each examiner prefers."""
    from evaluation.lm_examiner.people import write_equivalence_sheet
    from proctor.commands.grouping import Serving, examine_group
    from proctor.commands.inputs import benchmark_given
    from serving.named import named_values

    examine_group(
        "style_bias",
        named_values(examiner, "--examiner", form="NAME=DIR", strict=True),
        {"writer": writer, "stylist": stylist, "filter": judge},
        option,
        Serving(engine, dtype, max_length, schedule),
        benchmark=benchmark_given("jsonl", benchmark),
        limit=limit,
        seed=seed,
        out=out,
    )
    print(f"for people: {write_equivalence_sheet(out)} (fill in 'same', then 'proctor examiner style-people')")


@app.command("style-people")
def style_people(
    folder: Annotated[Path, typer.Argument(help="Folder of 'proctor examiner style'.")],
    sheet: Annotated[Path, typer.Option(help="The filled equivalence sheet.")],
    seed: Seed = 0,
) -> None:
    """Style bias over the pairs that people, and not a judge, found equivalent."""
    from evaluation.lm_examiner.people import people_on_style
    from evaluation.lm_examiner.results import show_style

    show_style(people_on_style(folder, sheet, seed=seed))
    print(f"figures: {folder / 'metrics_people.json'}")


@app.command()
def sheet(
    exam: Exams,
    out: Out,
    annotator: Annotated[list[str], typer.Option(help="Name of an annotator (repeatable).")] = ["rating"],  # noqa: B006
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many questions, drawn with the seed.")] = None,
    seed: Seed = 0,
) -> None:
    """Write the sheets in which people rate (1 to 5) and rank the candidates' answers, and the key."""
    from evaluation.lm_examiner.people import export_sheets
    from evaluation.lm_examiner.results import folders
    from proctor.run_folder.finished import read_exam_items

    given = folders(exam, "--exam")
    rows = export_sheets(
        given, lambda folder: read_exam_items(folder)[1], out, annotators=annotator, limit=limit, seed=seed
    )
    print(f"{rows} answers: {out / 'ratings.csv'}, {out / 'rankings.csv'}; the key: {out / 'key.jsonl'}")


@app.command()
def agree(
    key: Annotated[Path, typer.Option(help="key.jsonl of 'proctor examiner sheet'.")],
    out: Out,
    ratings: Annotated[Path | None, typer.Option(help="The filled ratings.csv.")] = None,
    rankings: Annotated[Path | None, typer.Option(help="The filled rankings.csv.")] = None,
    bertscore_model: Annotated[Path | None, typer.Option(help="Local encoder for BERTScore.")] = None,
    bertscore_layer: Annotated[int | None, typer.Option(help="Its layer.")] = None,
    seed: Seed = 0,
) -> None:
    """Agreement of the examiner, ROUGE, BLEU and BERTScore with people's ratings and rankings."""
    from evaluation.lm_examiner.people import measure_agreement
    from proctor.run_folder.single import once

    if ratings is None and rankings is None:
        raise ValueError("what do people say? give --ratings FILE or --rankings FILE, or both")
    encoder = bertscore_model, bertscore_layer
    for line in measure_agreement(key, ratings, rankings, *encoder, seed=seed, out=out, once=once):
        print(line)
    print(f"figures: {out / 'metrics.json'}")
