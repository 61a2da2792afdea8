"""The blind baseline: how well members can be told from non-members without any model, by their words alone.

A bag-of-words classifier that succeeds shows that the two groups differ (by date, source, topic), so that a detector's
success on them is no evidence of memory: not a fair test. On WikiMIA it reaches an AUC of 0.99.

A baseline that does not succeed is no evidence of the opposite: of 32 texts a group, one with a true AUC of .56 stays
unnoticed in four of five sets, and training can widen such a difference without any leak. So a test is fair by design,
where halves were drawn at random, or by equivalence: the upper bound of the blind AUC's 95% interval is at most 0.60.
Das et al. 2024, "Blind Baselines Beat Membership Inference Attacks for Foundation Models" (arXiv:2406.16201).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detection.method import Text
from detection.statistics.metrics import classes
from detection.statistics.roc_intervals import auc_interval
from detection.text.cutting import words

FOLDS = 5
LEAST_PER_CLASS = 10
EQUIVALENT = 0.60
"""The blind AUC that is as good as chance: its interval must end at or below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindBaseline:
    """auc, auc_ci: of out-of-fold predictions; None with a ``reason`` where not computable. The 95% interval is over
    the texts, given the fitted classifiers; it leaves out the spread of refitting (on noise, a fifth of the whole).

    n, n_members: labelled texts, and how many of them are members
    by_design: the two groups are halves that were drawn at random, so nothing but chance tells them apart
    """

    auc: float | None
    auc_ci: tuple[float, float] | None
    n: int
    n_members: int
    reason: str = ""
    by_design: bool = False

    @property
    def fair(self) -> bool | None:
        """True by design or by equivalence (the interval ends at or below 0.60); False where the baseline succeeds (the
        interval lies above 0.5); None where neither is shown: it cannot be told whether the test is fair.

        An interval below 0.5 is no success: cross-validation without a signal tends slightly below chance, for the
        words that are frequent among the held-out members are rarer among the members trained on.
        """
        if self.by_design:
            return True
        if self.auc_ci is None:
            return None
        if self.auc_ci[1] <= EQUIVALENT:
            return True
        return False if self.auc_ci[0] > 0.5 else None

    @property
    def doubt(self) -> str:
        """Why it cannot be told whether the test is fair; "" where it can."""
        if self.fair is not None or self.auc_ci is None:
            return self.reason
        return f"without a model an AUC of up to {self.auc_ci[1]:.2f} is possible, and {EQUIVALENT:.2f} is the most"


def blind_baseline(texts: Sequence[Text], *, seed: int, by_design: bool = False) -> BlindBaseline:
    """Logistic regression on word and punctuation counts (``cutting.words``), 5-fold stratified cross-validation; texts
    without a label are left out. Needs 10 texts per class. The same texts and seed give the same numbers.

    by_design: the labels were dealt at random
    """
    labelled = [text for text in texts if text.label is not None]
    labels = [int(text.label or 0) for text in labelled]
    n, n_members = len(labels), sum(labels)

    def none(reason: str) -> BlindBaseline:
        return BlindBaseline(auc=None, auc_ci=None, n=n, n_members=n_members, reason=reason, by_design=by_design)

    if min(n_members, n - n_members) < LEAST_PER_CLASS:
        return none(
            f"{n_members} members and {n - n_members} non-members; the blind baseline needs {LEAST_PER_CLASS} of each"
        )
    if not any(text.text.strip() for text in labelled):
        return none("the texts have no words")
    scores = _out_of_fold([text.text for text in labelled], labels, seed)
    groups = classes(labels, scores)
    low, high = auc_interval(groups)
    return BlindBaseline(auc=groups.auc(), auc_ci=(low, high), n=n, n_members=n_members, by_design=by_design)


def _out_of_fold(texts: list[str], labels: list[int], seed: int) -> list[float]:
    """Log-odds of being a member, each from a classifier that never saw the text.

    The vocabulary is that of all texts; a word of held-out texts only has weight 0, so nothing is given away.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    counts = CountVectorizer(analyzer=_words).fit_transform(texts)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model = LogisticRegression(max_iter=1_000)
    predicted = cross_val_predict(model, counts, labels, cv=folds, method="decision_function")
    return [float(value) for value in predicted]


def _words(text: str) -> list[str]:
    return words(text, marks=True)
