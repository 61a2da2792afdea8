"""The blind baseline: how well members can be told from non-members without any model, by their words alone.

A bag-of-words classifier that succeeds shows that the two groups differ (by date, source, topic), so that a detector's
success on them is no evidence of memory: not a fair test. On WikiMIA it reaches an AUC of 0.99.
Das et al. 2024, "Blind Baselines Beat Membership Inference Attacks for Foundation Models" (arXiv:2406.16201).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detection.method import Text
from detection.statistics.bootstrap import auc_interval
from detection.statistics.metrics import auc
from detection.text.cutting import words

FOLDS = 5
LEAST_PER_CLASS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindBaseline:
    """auc, auc_ci: of out-of-fold predictions; None with a ``reason`` where not computable. The 95% interval is over
    the texts, given the fitted classifiers; it leaves out the spread of refitting (on noise, a fifth of the whole).

    n, n_members: labelled texts, and how many of them are members
    """

    auc: float | None
    auc_ci: tuple[float, float] | None
    n: int
    n_members: int
    reason: str = ""

    @property
    def fair(self) -> bool | None:
        """False where the baseline succeeds (its interval lies above 0.5); None where it is unknown.

        An interval below 0.5 is no success: cross-validation without a signal tends slightly below chance, for the
        words that are frequent among the held-out members are rarer among the members trained on.
        """
        return None if self.auc_ci is None else self.auc_ci[0] <= 0.5


def blind_baseline(texts: Sequence[Text], *, seed: int) -> BlindBaseline:
    """Logistic regression on word and punctuation counts (``cutting.words``), 5-fold stratified cross-validation; texts
    without a label are left out. Needs 10 texts per class. The same texts and seed give the same numbers."""
    labelled = [text for text in texts if text.label is not None]
    labels = [int(text.label or 0) for text in labelled]
    n, n_members = len(labels), sum(labels)

    def none(reason: str) -> BlindBaseline:
        return BlindBaseline(auc=None, auc_ci=None, n=n, n_members=n_members, reason=reason)

    if min(n_members, n - n_members) < LEAST_PER_CLASS:
        return none(
            f"{n_members} members and {n - n_members} non-members; the blind baseline needs {LEAST_PER_CLASS} of each"
        )
    if not any(text.text.strip() for text in labelled):
        return none("the texts have no words")
    scores = _out_of_fold([text.text for text in labelled], labels, seed)
    low, high = auc_interval(labels, scores, seed=seed)
    return BlindBaseline(auc=auc(labels, scores), auc_ci=(low, high), n=n, n_members=n_members)


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
