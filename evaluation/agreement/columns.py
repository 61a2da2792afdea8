"""Agreement of a file's columns: human ratings or labels against automatic scores, text baselines among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from evaluation.agreement import report
from evaluation.agreement.kappa import Labels, disagreement, label_order
from evaluation.agreement.report import AgreementSettings, Column, Section
from evaluation.agreement.rows import NO_VALUE, read_table
from evaluation.text_metrics import BERTSCORE, NAMES, bert_scores, check_encoder, text_scores
from evaluation.wordnet import check_folder

Kind = Literal["scores", "labels"]
NO_REFERENCE: Final = "no reference text"


class Baselines(NamedTuple):
    """The text baselines asked for: columns of the texts, and the local folders that METEOR and BERTScore may use."""

    reference: str
    reply: str
    wordnet: Path | None = None
    encoder: Path | None = None
    layer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What is compared with what.

    human: columns of the annotators; several are put together by their mean (scores) or majority (labels)
    by: column whose values part the rows
    """

    data: Path
    human: Sequence[str]
    score: Sequence[str]
    by: str | None
    kind: Kind
    baselines: Baselines | None
    settings: AgreementSettings


class CheckedColumns:
    """The file read and everything in it checked, so that ``measure`` has nothing left to refuse.

    ValueError for a column that is missing, named twice or named like a baseline, a score that isn't a number, weights
    with labels that aren't numbers, or a folder that holds no WordNet or no encoder.
    """

    def __init__(self, asked: Columns) -> None:
        self.asked = asked
        _check_names(asked)
        texts = [asked.baselines.reference, asked.baselines.reply] if asked.baselines else []
        table = read_table(asked.data)
        table.check([*asked.human, *asked.score, *texts, *([asked.by] if asked.by is not None else [])])
        self.places = table.places
        self.labels: dict[str, Labels] = {name: table.labels(name) for name in asked.human}
        self.groups = None if asked.by is None else table.labels(asked.by)
        self.texts = [table.texts(name) for name in texts]
        if asked.kind == "labels":
            self.scores = {name: label_column(table.labels(name)) for name in asked.score}
            self.truth = report.majority_label(list(self.labels.values()))
        else:
            self.scores = {name: Column(*table.numbers(name)) for name in asked.score}
            self.truth = report.mean_rating([Column(*table.numbers(name)) for name in asked.human])
        if asked.settings.weights != "none":
            used = [*self.labels.values(), *(c.values for c in self.scores.values() if asked.kind == "labels")]
            disagreement(label_order([x for one in used for x in one if x is not None]), asked.settings.weights)
        if asked.baselines and asked.baselines.wordnet:
            check_folder(asked.baselines.wordnet)
        if asked.baselines and asked.baselines.encoder:
            check_encoder(asked.baselines.encoder, asked.baselines.layer)

    def measure(self) -> tuple[Section, list[dict[str, Any]]]:
        """The figures, overall and per group, and one row per row of the file: ``row`` (its place), ``human``,
        ``scores``, ``left_out`` (by score, why)."""
        asked = self.asked
        how = self._add_baselines()
        metrics: Section = {
            "kind": asked.kind,
            "human": list(asked.human),
            "settings": asdict(asked.settings),
            **self._section(range(len(self.places))),
        }
        if how:
            metrics["text_baselines"] = how
        if self.groups is not None:
            values, without = report.grouped(self.groups, self._section)
            metrics["by"] = {"column": asked.by, "values": values, "rows_without_value": without}
        left_out = {name: report.usable(self.truth, column)[1] for name, column in self.scores.items()}
        rows = [
            {
                "row": place.line,
                "human": self.truth.values[row],
                "scores": {name: column.values[row] for name, column in self.scores.items()},
                "left_out": {name: reasons[row] for name, reasons in left_out.items() if row in reasons},
            }
            for row, place in enumerate(self.places)
        ]
        return metrics, rows

    def _section(self, rows: Sequence[int]) -> Section:
        measure = report.label_section if self.asked.kind == "labels" else report.score_section
        chosen = {name: column.pick(rows) for name, column in self.scores.items()}
        people = {name: [values[row] for row in rows] for name, values in self.labels.items()}
        section: Section = {
            "n_rows": len(rows),
            "scores": measure(self.truth.pick(rows), chosen, self.asked.settings),
        }
        between = report.annotator_section(people, self.asked.settings.weights)
        return {**section, "annotators": between} if between else section

    def _add_baselines(self) -> dict[str, str]:
        """Adds the text baselines to the scores; says how each was computed."""
        asked = self.asked.baselines
        if asked is None:
            return {}
        found, how = text_scores(self.texts[0], self.texts[1], wordnet=asked.wordnet)
        if asked.encoder is not None:
            found[BERTSCORE], how[BERTSCORE] = bert_scores(
                self.texts[0], self.texts[1], folder=asked.encoder, layer=asked.layer
            )
        for name, values in found.items():
            self.scores[name] = Column(values, ["" if value is not None else NO_REFERENCE for value in values])
        return how


def label_column(labels: Labels) -> Column:
    """Labels as a column; where there is none, that is the reason."""
    return Column(labels, ["" if label is not None else NO_VALUE for label in labels])


def _check_names(asked: Columns) -> None:
    for option, names in (("--human", asked.human), ("--score", asked.score)):
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(f"{option} {name} is given twice; once is enough")
    for name in asked.score:
        if name in asked.human:
            raise ValueError(f"--score {name} is a --human column, too; it would agree with itself")
        if asked.baselines and name in (*NAMES, BERTSCORE):
            raise ValueError(f"--score {name} is the name of a text baseline; rename the column")
