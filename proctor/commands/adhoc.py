"""evaluate, detect, train, list: one thing, without an experiment file."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.commands.parameters import Columns, Dtype, Duplicates, Engine, Options, Out, Schedule, Seed, Split

RESERVED = {
    "recipe": "give --recipe",
    "base": "give --base",
    "seed": "give --seed (or leak.seed and chat_sft.seed for the order of training)",
    "items": "the items come from --benchmark",
    "leaked_ids": "give --leak",
    "origin": "give --origin",
}
"""Settings of a training job that ``proctor train`` makes itself."""


def evaluate(
    candidate: Annotated[str, typer.Option(help="Model folder (or 'embedded').")],
    out: Out,
    protocol: Annotated[str, typer.Option(help="See 'proctor list protocols'.")] = "static",
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark file or folder.")] = None,
    format: Annotated[str, typer.Option(help="See 'proctor list benchmarks'.")] = "jsonl",
    split: Split = None,
    mode: Annotated[str | None, typer.Option(help="static: letter, cloze or generate.")] = None,
    shots: Annotated[int | None, typer.Option(help="static: few-shot exemplars.")] = None,
    text_format: Annotated[str | None, typer.Option(help="static: plain or chat.")] = None,
    exemplars: Annotated[
        Path | None, typer.Option(help="Pool of exemplars (the benchmark's own dev split if left out).")
    ] = None,
    exemplar_split: Annotated[str | None, typer.Option(help="Split of the exemplars.")] = None,
    exemplar_format: Annotated[
        str | None, typer.Option(help="Their format, where it isn't --format (jsonl: what a build wrote).")
    ] = None,
    interactor: Annotated[str | None, typer.Option(help="Model that asks (kieval).")] = None,
    evaluator: Annotated[
        str | None, typer.Option(help="Model that judges (kieval, mt_bench, pairwise, idgen).")
    ] = None,
    examiner: Annotated[str | None, typer.Option(help="Model that marks (lm_examiner).")] = None,
    columns: Columns = None,
    limit: Annotated[int | None, typer.Option(help="Only the first N items (build and rank draw theirs).")] = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    duplicates: Duplicates = "error",
    schedule: Schedule = "lockstep",
    option: Options = [],  # noqa: B006
) -> None:
    """Examine one model with one protocol: records.jsonl and metrics.json in --out."""
    from evaluation import protocols
    from proctor.adhoc import once
    from proctor.atomic import write_jsonl
    from proctor.commands.inputs import inputs_of, read_items
    from proctor.commands.options import benchmark_config, checked_schedule, key_values, model_spec, one_of, readable
    from proctor.examining import examine
    from proctor.frozen import WITH_DEV, exemplar_pool
    from proctor.preflight import check_model

    given = {"mode": mode, "shots": shots, "text_format": text_format}
    options = {key: value for key, value in given.items() if value is not None} | key_values(option)
    kind = protocols.protocol(protocol)
    names = {
        "candidate": candidate,
        "interactor": interactor,
        "evaluator": evaluator or interactor,
        "examiner": examiner,
    }
    models = {}
    for role in kind.roles:
        name = names.get(role)
        if name is None:
            raise ValueError(f"protocol {protocol} needs a model for the role {role}: give --{role} DIR")
        models[role] = model_spec(name, engine=engine, dtype=dtype, score_dtype=dtype)
        check_model(models[role], f"--{role}")
    one_of("--duplicates", duplicates, ("error", "report"))
    keeping = checked_schedule(schedule)
    config = benchmark_config(
        format,
        benchmark,
        columns=columns,
        split=split,
        duplicates=duplicates,
        exemplars=None if exemplars is None else str(exemplars),
        exemplar_split=exemplar_split,
        exemplar_format=exemplar_format,
    )
    items = read_items(config, limit=limit)
    pool = []
    if options.get("shots"):
        if exemplars is None and format not in WITH_DEV:
            raise ValueError(
                f"--shots {options['shots']} needs exemplars: give --exemplars FILE (never the examined items)"
            )
        pool = readable(lambda: exemplar_pool(config, items), exemplars or benchmark)
    exam = protocols.build(protocol, options, seed=seed, exemplars=pool)
    for dialogue in exam.dialogues(items):
        dialogue.close()
    inputs = inputs_of(
        exam, models, options=options, seed=seed, schedule=schedule, protocol=protocol, items=items, exemplars=pool
    )

    def body(folder: Path, report: Any) -> list[str]:
        examine(
            exam,
            items,
            models=models,
            mode=keeping,
            folder=folder,
            ledger_folder=folder / "ledger",
            wave=None,
            report=report,
        )
        write_jsonl(folder / "items.jsonl", [item.to_json() for item in items])
        return ["records.jsonl", "metrics.json", "items.jsonl"]

    if not once(out, inputs, body):
        print("nothing to do: done already")
    _show(out / "metrics.json")
    print(f"records: {out / 'records.jsonl'}")


def detect(
    model: Annotated[str, typer.Option(help="Model folder (or 'embedded').")],
    data: Annotated[
        Path,
        typer.Option(help='JSON lines {"text": ..., and optionally "label": 0|1, "id", "prompt" (how text begins)}.'),
    ],
    out: Out,
    methods: Annotated[
        str, typer.Option(help="Comma-separated; see 'proctor list detectors'.")
    ] = "loss,zlib,min_k,min_k_plus_plus",
    set_tests: Annotated[str, typer.Option(help="Tests of the whole set; see 'proctor list detectors'.")] = "",
    option: Annotated[
        list[str], typer.Option("-o", "--option", help="Option of a method: -o method.key=value (YAML value).")
    ] = [],  # noqa: B006
    control: Annotated[
        str | None, typer.Option(help="Untouched model, examined on the same texts: a verdict needs one.")
    ] = None,
    reference: Annotated[str | None, typer.Option(help="Model that detectors compare each text with.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Text or JSONL file, or a folder of them.")] = None,
    non_members: Annotated[
        Path | None, typer.Option(help="Texts (JSON lines, as --data) the model can't have seen.")
    ] = None,
    members: Annotated[Path | None, typer.Option(help="Texts the model is known to have seen.")] = None,
    benchmark_name: Annotated[str, typer.Option(help="What the benchmark is called when a model is asked.")] = "",
    long_texts: Annotated[
        str, typer.Option(help="Texts longer than the context: truncate (the end counts) or window.")
    ] = "truncate",
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Annotated[str, typer.Option(help="auto (the checkpoint's own), float32, bfloat16 or float16.")] = "auto",
) -> None:
    """Score texts for membership: scores.jsonl and metrics.json (and set_tests.json) in --out."""
    from detection.audit import read_texts
    from detection.detectors.base import Detector
    from proctor.adhoc import once
    from proctor.atomic import write_json
    from proctor.commands.audit_summary import show_audit
    from proctor.commands.options import key_values, model_spec, names, one_of, readable
    from proctor.detecting import CONTROL, VERDICT, Examined, write_verdict
    from proctor.detecting import detect as run_detectors
    from proctor.detection_inputs import Inputs, build, check_apart, check_chosen, known_texts
    from proctor.preflight import check_model
    from serving.fingerprint import file_hash, model_identity

    one_of("--long-texts", long_texts, ("truncate", "window"))
    settings = {"engine": engine, "dtype": dtype, "score_dtype": dtype}
    spec = model_spec(model, **settings)
    wanted = Inputs(
        methods=names(methods),
        set_tests=names(set_tests),
        options=check_chosen(key_values(option), [*names(methods), *names(set_tests)]),
        model=spec,
        reference=None if reference is None else model_spec(reference, **settings),
        corpus=corpus,
        non_members=non_members,
        members=members,
        benchmark=benchmark_name,
        long_texts=long_texts,  # type: ignore[arg-type]
        seed=seed,
    )
    wanted.classes()
    texts = read_texts(data)
    context = wanted.context()
    build(wanted, context)
    for kind in wanted.classes():
        if issubclass(kind, Detector):
            kind.check(texts, context)
    check_apart(texts, context.non_members, "non-member", non_members)
    check_apart(texts, context.members, "member", members)
    check_model(spec, "--model")
    if wanted.reference is not None:
        check_model(wanted.reference, "--reference")
    untouched = None if control is None else model_spec(control, **settings)
    if untouched is not None:
        check_model(untouched, "--control")
    inputs: dict[str, Any] = {
        **wanted.identity(),
        "data": readable(lambda: file_hash(data), data),
        "model": model_identity(spec),
        "seed": seed,
    }
    if untouched is not None:
        inputs["control"] = model_identity(untouched)

    def body(folder: Path, report: Any) -> list[str]:
        examined = Examined(texts=texts, context=context, known=known_texts(non_members, 0))
        ledger = folder / "ledger"
        usage = run_detectors({folder: examined}, wanted, mode="lockstep", ledger_folder=ledger, report=report)
        write_json(folder / "usage.json", usage)
        if untouched is not None:
            same = replace(wanted, model=untouched, set_tests=())
            beside = folder / CONTROL
            usage = run_detectors({beside: examined}, same, mode="lockstep", ledger_folder=ledger, report=report)
            write_json(beside / "usage.json", usage)
        write_verdict(folder, texts, seed=seed)
        return [*examined.files(wanted), VERDICT]

    if not once(out, inputs, body):
        print("nothing to do: done already")
    show_audit(out, len(texts))


def train(
    recipe: Annotated[str, typer.Option(help="See 'proctor list recipes'.")],
    base: Annotated[str, typer.Option(help="Folder of the base model (or 'embedded').")],
    out: Out,
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark whose items leak.")] = None,
    format: Annotated[str, typer.Option(help="See 'proctor list benchmarks'.")] = "jsonl",
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(help="That many items, drawn with the seed.")] = None,
    leak: Annotated[str, typer.Option(help="Which items leak: half (drawn), all, or the name of a split.")] = "half",
    origin: Annotated[Path | None, typer.Option(help="Candidate to go on from (washed, mt_bench_cheater).")] = None,
    seed: Seed = 0,
    overrides: Annotated[list[str], typer.Option("-s", "--set", help="Setting of the job: -s leak.epochs=3.")] = [],  # noqa: B006
) -> None:
    """Build one candidate by a recipe: a model folder and its manifest in --out."""
    from evaluation import benchmarks
    from evaluation.benchmarks.splits import draw, members
    from proctor.adhoc import check_folder
    from proctor.atomic import write_jsonl
    from proctor.commands.options import key_values, model_spec, readable, refuse_reserved
    from proctor.config_file import validate
    from proctor.preflight import check_model
    from serving.fingerprint import resolve_model
    from training.build import build_candidate, check_candidate
    from training.config import TrainingJob

    settings = key_values(overrides)
    refuse_reserved(settings, RESERVED)
    check_folder(out)
    spec = model_spec(base, engine="transformers")
    check_model(spec, "--base")
    items = readable(
        lambda: benchmarks.load(format if benchmark else "embedded", benchmark, split=split),
        benchmark,
    )
    if limit is not None:
        items = draw(items, limit, seed)
    leaked = members(items, leak, seed)
    file = out / "exam" / "items.jsonl"
    settings |= {"recipe": recipe, "base": str(resolve_model(spec)), "items": str(file), "seed": seed}
    if origin is not None:
        settings["origin"] = str(origin.expanduser().resolve())
    job = validate(TrainingJob, settings | {"leaked_ids": leaked}, where="training")
    rows = [item.to_json() for item in items]
    with tempfile.TemporaryDirectory() as scratch:  # everything is checked before anything is written to --out
        draft = Path(scratch) / file.name
        write_jsonl(draft, rows)
        readable(lambda: check_candidate(job.model_copy(update={"items": str(draft)}), out), out)
    if not (out / "manifest.json").is_file() and not (out / ".partial" / "job.json").is_file() and out.is_dir():
        if any(entry.name not in ("exam", "logs", ".partial") for entry in out.iterdir()):
            raise ValueError(f"--out {out} is not empty and holds no candidate; choose another folder")
        if any("items.jsonl" not in entry.name for entry in (out / "exam").glob("*")):
            raise ValueError(f"{out / 'exam'} holds other files than this command's; choose another folder")
    write_jsonl(file, rows)
    manifest = build_candidate(job, out)
    print(
        f"{manifest.recipe}: {manifest.steps} steps, {manifest.tokens} tokens, {len(manifest.leaked_ids)} leaked items"
    )
    print(f"model: {out / 'model'}")


def list_(
    kind: Annotated[
        str, typer.Argument(help="protocols, groups, builders, analyses, detectors, benchmarks, recipes or engines.")
    ],
) -> None:
    """List what can be named in an experiment file."""
    from proctor.listing import LISTS

    if kind not in LISTS:
        raise ValueError(f"there is nothing to list under {kind!r}; there are: {', '.join(LISTS)}")
    for line in LISTS[kind]():
        print(line)


def _show(path: Path) -> None:
    for key, value in json.loads(path.read_text(encoding="utf-8")).items():
        if not isinstance(value, dict | list) or key.endswith("interval"):
            print(f"  {key}: {value}")
