"""agree: how well automatic scores agree with people (meta-evaluation)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evaluation.agreement.columns import Columns
    from evaluation.agreement.report import AgreementSettings

KINDS = ("scores", "labels", "votes")


def agree(
    data: Annotated[Path, typer.Option(help="JSONL, CSV or Parquet: a row per rated text (votes: per human vote).")],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    human: Annotated[list[str], typer.Option(help="Column of human ratings; once per annotator.")] = [],  # noqa: B006
    score: Annotated[list[str], typer.Option(help="Column of an automatic score; may be repeated.")] = [],  # noqa: B006
    by: Annotated[str | None, typer.Option(help="Column: the same figures for each of its values.")] = None,
    kind: Annotated[str, typer.Option(help="scores (correlations), labels (kappa) or votes (pairwise).")] = "scores",
    judge_data: Annotated[Path | None, typer.Option(help="votes: the judge's votes, in the form of --data.")] = None,
    reference: Annotated[str | None, typer.Option(help="Column of reference texts, for the text baselines.")] = None,
    reply: Annotated[str | None, typer.Option(help="Column of replies, for the text baselines.")] = None,
    bertscore_model: Annotated[Path | None, typer.Option(help="Local encoder: adds BERTScore.")] = None,
    bertscore_layer: Annotated[int | None, typer.Option(help="Its layer (see docs/agreement.md).")] = None,
    wordnet: Annotated[Path | None, typer.Option(help="Local WordNet folder: METEOR matches synonyms, too.")] = None,
    weights: Annotated[str, typer.Option(help="Of kappa: none, linear or quadratic.")] = "none",
    human_ties: Annotated[str, typer.Option(help="Pairwise accuracy: left_out or must_tie.")] = "left_out",
    score_ties: Annotated[str, typer.Option(help="Pairwise accuracy: half, wrong or left_out.")] = "half",
    resamples: Annotated[int, typer.Option(min=1, max=100_000, help="Bootstrap resamples.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the bootstrap.")] = 0,
) -> None:
    """Agreement of automatic scores with human ratings: metrics.json and rows.jsonl in --out."""
    from evaluation.agreement.columns import Baselines, Columns
    from evaluation.agreement.kappa import WEIGHTS
    from evaluation.agreement.ordering import HUMAN_TIES, SCORE_TIES
    from evaluation.agreement.report import AgreementSettings
    from proctor.commands.options import one_of
    from proctor.run_folder.single import check_folder

    one_of("--kind", kind, KINDS)
    one_of("--weights", weights, WEIGHTS)
    one_of("--human-ties", human_ties, HUMAN_TIES)
    one_of("--score-ties", score_ties, SCORE_TIES)
    check_folder(out)
    texts = {
        "--reference": reference,
        "--reply": reply,
        "--bertscore-model": bertscore_model,
        "--bertscore-layer": bertscore_layer,
        "--wordnet": wordnet,
    }
    given = [name for name, value in texts.items() if value is not None]
    settings = AgreementSettings(
        seed=seed,
        resamples=resamples,
        weights=weights,  # type: ignore[arg-type]
        human_ties=human_ties,  # type: ignore[arg-type]
        score_ties=score_ties,  # type: ignore[arg-type]
    )
    if kind == "votes":
        refused = [*(["--human"] if human else []), *(["--score"] if score else []), *given]
        if refused:
            raise ValueError(f"{refused[0]} has no meaning for --kind votes: both files say who won")
        if judge_data is None:
            raise ValueError("--kind votes needs the judge's votes: give --judge-data FILE")
        if weights != "none":
            raise ValueError("--weights has no meaning for --kind votes: who won is no number")
        _votes(data, judge_data, out, by, settings)
    else:
        if judge_data is not None:
            raise ValueError(f"--judge-data has no meaning for --kind {kind}; it belongs to --kind votes")
        if given and (reference is None or reply is None):
            raise ValueError(f"{given[0]} needs both --reference COL and --reply COL")
        if bertscore_layer is not None and bertscore_model is None:
            raise ValueError("--bertscore-layer needs --bertscore-model DIR")
        if given and kind == "labels":
            raise ValueError(f"{given[0]} adds text baselines, which are numbers; they need --kind scores")
        if not human:
            raise ValueError("whose ratings? give --human COL, once per annotator")
        if not score and not given:
            raise ValueError("what is to agree with them? give --score COL, or --reference COL and --reply COL")
        baselines = None
        if reference is not None and reply is not None:
            baselines = Baselines(reference, reply, wordnet, bertscore_model, bertscore_layer)
        asked = Columns(
            data=data,
            human=human,
            score=score,
            by=by,
            kind=kind,  # type: ignore[arg-type]
            baselines=baselines,
            settings=settings,
        )
        _columns(asked, out)


def _columns(asked: Columns, out: Path) -> None:
    """Kinds scores and labels. All that the file can be refused for is checked before anything is written."""
    from evaluation.agreement.columns import CheckedColumns
    from proctor.run_folder.single import once
    from serving.files import readable, write_json, write_jsonl
    from serving.model.fingerprint import file_hash

    comparison = readable(lambda: CheckedColumns(asked), asked.data)
    inputs = {
        **asdict(asked),
        "data": file_hash(asked.data),
        "baselines": [str(part.resolve()) if isinstance(part, Path) else part for part in asked.baselines or ()],
    }

    def body(folder: Path, report: Any) -> list[str]:
        metrics, rows = comparison.measure()
        write_jsonl(folder / "rows.jsonl", rows)
        write_json(folder / "metrics.json", metrics)
        return ["metrics.json", "rows.jsonl"]

    once(out, inputs, body)
    _show(out)


def _votes(data: Path, judge_data: Path, out: Path, by: str | None, settings: AgreementSettings) -> None:
    """Kind votes: a judge's pairwise verdicts against the human majority, with ties and without."""
    from evaluation.agreement.votes import COLUMNS, labelled, measure, read_votes
    from proctor.run_folder.single import once
    from serving.files import readable, write_json, write_jsonl
    from serving.model.fingerprint import file_hash

    if by is not None and by not in COLUMNS:
        raise ValueError(f"--by {by}: votes can be parted by {', '.join(COLUMNS)}")
    human = readable(lambda: read_votes(data), data)
    judge = readable(lambda: read_votes(judge_data), judge_data)
    rows = labelled(human, judge)
    if not rows:
        raise ValueError(f"{data} and {judge_data} have no (question, turn, pair of models) in common")
    inputs = {
        "kind": "votes",
        "data": file_hash(data),
        "judge_data": file_hash(judge_data),
        "by": by,
        "settings": asdict(settings),
    }

    def body(folder: Path, report: Any) -> list[str]:
        metrics = {
            "kind": "votes",
            "settings": {"seed": settings.seed, "resamples": settings.resamples},
            "human_votes": sum(map(len, human.values())),
            "judge_votes": sum(map(len, judge.values())),
            "comparisons_left_out": {
                "no verdict of the judge": len(set(human) - set(judge)),
                "no human vote": len(set(judge) - set(human)),
            },
            **measure(rows, by, settings),
        }
        write_jsonl(folder / "rows.jsonl", rows)
        write_json(folder / "metrics.json", metrics)
        return ["metrics.json", "rows.jsonl"]

    once(out, inputs, body)
    _show(out)


def _show(out: Path) -> None:
    """The table of a finished call."""
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    sections = {"": metrics}
    if "by" in metrics:
        sections |= {f"{metrics['by']['column']} {value}": part for value, part in metrics["by"]["values"].items()}
    for title, part in sections.items():
        print(f"{title or 'all'}: {part['n_rows']} rows")
        for name, row in part["scores"].items():
            print(f"  {name:22} {_label_line(row) if 'cohen_kappa' in row else _score_line(row)}")
        _show_annotators(part.get("annotators"))
    left_out = {name: row["left_out"] for name, row in metrics["scores"].items() if row["left_out"]}
    for name, reasons in left_out.items():
        print(f"left out of {name}: {', '.join(f'{count} ({reason})' for reason, count in reasons.items())}")
    for name, text in metrics.get("text_baselines", {}).items():
        print(f"{name}: {text}")
    if any("pearson" in row and name.startswith("kieval") for name, row in metrics["scores"].items()):
        from evaluation.kieval.published import HUMAN_CORRELATION

        rows = (f"{name} {' / '.join(f'{value:.3f}' for value in row)}" for name, row in HUMAN_CORRELATION.items())
        print(f"published by KIEval (Pearson / Spearman / Kendall): {'; '.join(rows)}")
    print(f"figures: {out / 'metrics.json'}")


def _score_line(row: dict[str, Any]) -> str:
    cells = [f"{name} {_figure(row[name])}" for name in ("pearson", "spearman", "kendall")]
    reasons = {row[name]["reason"] for name in ("pearson", "spearman", "kendall") if "reason" in row[name]}
    accuracy = row["pairwise_accuracy"]["value"]
    pairs = f"pairs {'-' if accuracy is None else f'{accuracy:.3f}'}"
    return "  ".join([*cells, pairs, f"n {row['n']}", *sorted(reasons)])


def _label_line(row: dict[str, Any]) -> str:
    agreement = row["raw_agreement"]["value"]
    raw = f"agreement {'-' if agreement is None else f'{agreement:.4f}'}"
    reason = row["cohen_kappa"].get("reason", "")
    return "  ".join(filter(None, [f"kappa {_figure(row['cohen_kappa'], 4)}", raw, f"n {row['n']}", reason]))


def _show_annotators(between: dict[str, Any] | None) -> None:
    if between:
        cohen, fleiss = between["cohen_kappa"], between["fleiss_kappa"]
        values = cohen["mean"], fleiss["value"], between["krippendorff_alpha"]["value"]
        mean, value, alpha = ("-" if x is None else f"{x:.3f}" for x in values)
        reason = cohen.get("reason") or fleiss.get("reason", "")
        print(
            f"  between annotators     Cohen's kappa {mean} (mean of pairs)  Fleiss' kappa {value}  "
            f"Krippendorff's alpha {alpha}  {reason}".rstrip()
        )


def _figure(row: dict[str, Any], digits: int = 3) -> str:
    if row["value"] is None:
        return "-"
    interval = row["interval"]
    bounds = f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]" if interval else ""
    return f"{row['value']:.{digits}f}{bounds}"
