"""The loss gap as a test of a whole set: leaked items against untouched ones, and Skywork's own two differences.

Three numbers with three signs (arithmetic in ``detection.loss_gap``):

- ours, untouched minus leaked: *positive* means leakage, as everywhere here. Needs labels.
- Skywork's D1 = L_test - L_ref (Wei et al. 2023, arXiv:2310.19341): *negative* means that the test set leaked. L_ref is
  the loss of new items of the same kind, which a file names.
- Skywork's D2 = L_test - L_train: *positive* means that the benchmark's training set was trained on and its test set
  was not; near 0, neither or both were. The training set's items are in a file, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from detection.method import Context, DetectorOptions, Text, mean, parts, table
from detection.sets.base import Figures, SetTest
from detection.statistics.loss_gap import ItemLoss, loss_gap, skywork
from detection.text.texts import read_texts
from serving.records import Dialogue

_TEXTS_AT_ONCE = 256


class LossGapTest(SetTest):
    """Figures beside ``p_value`` and ``n`` (texts under examination with a loss):

    per_example, per_example_ci, per_token, per_token_ci, n_untouched, n_leaked: our gap (``detection.loss_gap``)
    D1, D2: Skywork's, per example, nats per token; the test set is the leaked items, or all where none is labelled
    n_test, n_reference, n_train: items with a loss behind them

    p_value: one-sided Welch t-test of untouched > leaked; without labels, of reference > test (D1 < 0).
    """

    name = "loss_gap"
    version = 2
    needs = ("log_probabilities",)
    passes = 1
    paper = "Wei et al. 2023 (Skywork), arXiv:2310.19341"
    files = ("reference", "train")

    class Options(DetectorOptions):
        """reference, train: files of texts like the examined ones (see ``detection.texts.read_texts``)."""

        reference: str = ""
        train: str = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        named = {key: getattr(self.options, key) for key in self.files}
        self.sets = {key: read_texts(Path(path).expanduser()) if path else [] for key, path in named.items()}

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        losses: dict[str, list[ItemLoss | None]] = {}
        if all("loss" in row for row in scores):
            losses["examined"] = [_known(row) for row in scores]
        else:
            losses["examined"] = yield from self._losses(texts)
        for key, others in self.sets.items():
            losses[key] = yield from self._losses(others)
        pairs = list(zip(texts, losses["examined"], strict=True))
        untouched = [loss for text, loss in pairs if loss is not None and text.label == 0]
        leaked = [loss for text, loss in pairs if loss is not None and text.label == 1]
        anyone = [loss for _, loss in pairs if loss is not None]
        test = anyone if all(text.label is None for text in texts) else leaked
        reference, train = ([loss for loss in losses[key] if loss is not None] for key in ("reference", "train"))
        gap = loss_gap(untouched, leaked)
        found: Figures = {
            **asdict(gap),
            **skywork(test=test, reference=reference, train=train),
            "n": len(anyone),
            "n_test": len(test),
            "n_reference": len(reference),
            "n_train": len(train),
        }
        if gap.reason and reference and test:  # Skywork's own comparison is the only one there is
            found["p_value"], found["reason"] = loss_gap(reference, test).p_value, ""
        if not found["reason"]:
            del found["reason"]
            if found["p_value"] is None:
                found["reason"] = "fewer than 2 items in a group, or no spread"
        return found

    def _losses(self, texts: Sequence[Text]) -> Dialogue[list[ItemLoss | None]]:
        """One loss per text, None for a text without a token."""
        found: list[ItemLoss | None] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            chosen = texts[start : start + _TEXTS_AT_ONCE]
            tables = yield [table(text, self.context.full_vocabulary) for text in chosen]
            for text, tokens in zip(chosen, tables, strict=True):
                values = parts(text, tokens)[0].logprobs
                found.append(ItemLoss(mean=-mean(values), tokens=len(values)) if values else None)
        return found


def _known(row: Mapping[str, float | None]) -> ItemLoss | None:
    loss, tokens = row["loss"], row.get("tokens")
    return None if loss is None or not tokens else ItemLoss(mean=-loss, tokens=int(tokens))
