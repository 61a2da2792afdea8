"""``proctor detect``: the evidence of leakage in some texts, ad hoc."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.commands.options import Engine, Out, Seed


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
    from detection.inputs import Inputs, build, check_apart, check_chosen, known_texts
    from detection.lines import show_audit
    from detection.method import Detector
    from detection.run_detectors import CONTROL, VERDICT, Examined, write_verdict
    from detection.run_detectors import detect as run_detectors
    from proctor.checks.experiment import check_model
    from proctor.commands.options import key_values, model_spec, names, one_of
    from proctor.run_folder.single import once
    from serving.files import readable, write_json
    from serving.model.fingerprint import file_hash, model_identity

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

    once(out, inputs, body)
    show_audit(out, len(texts))
