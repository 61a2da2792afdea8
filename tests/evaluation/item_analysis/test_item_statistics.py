from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from evaluation.item_analysis import irt
from evaluation.item_analysis.classical import analyse, check_cuts, distribution, group_size, label, sure_label
from evaluation.item_analysis.matrix import Matrix, from_records, read_csv, to_csv
from evaluation.item_analysis.report import ItemAnalysisSettings
from evaluation.item_analysis.report import analyse as report
from evaluation.item_analysis.set_level import compare, set_level
from evaluation.item_analysis.short_form import short_form


def matrix(rows: list[list[float]], max_score: float = 3.0) -> Matrix:
    return Matrix(
        candidates=tuple(f"c{i}" for i in range(len(rows))),
        items=tuple(f"i{j}" for j in range(len(rows[0]))),
        scores=np.array(rows, dtype=float),
        max_score=max_score,
    )


@pytest.mark.parametrize(
    ("scores", "difficulty", "discrimination"), [((0, 0), 3, 0), ((0, 3), 1.5, 1), ((3, 0), 1.5, 1), ((3, 3), 0, 0)]
)
def test_the_two_candidates_of_the_paper(scores: tuple[int, int], difficulty: float, discrimination: float) -> None:
    figures = analyse(matrix([[scores[0]], [scores[1]]]), resamples=0)
    assert figures.difficulty.tolist() == [difficulty]
    assert figures.discrimination.tolist() == [discrimination]


def test_groups_are_made_without_the_item_and_an_index_may_be_negative() -> None:
    """Rest scores of item 0: 3+3, 2+2, 1+1, 0 -> the best candidate has 0 on it, the worst 3."""
    figures = analyse(matrix([[0, 3, 3], [1, 2, 2], [2, 1, 1], [3, 0, 0]]), resamples=0)
    assert figures.group.tolist() == [1, 1, 1]
    # all rest scores of items 1 and 2 are 3: nobody is better than anybody, and the groups are everybody's mean
    assert figures.discrimination.tolist() == [-1, 0, 0]
    assert (figures.high[0], figures.low[0]) == (0, 3)
    assert figures.item_rest[0] == pytest.approx(-1)
    assert math.isnan(figures.point_biserial[0])


def test_ties_are_averaged_and_noise_discriminates_nothing() -> None:
    # rest 0, 1, 1, 1, 2 of five candidates: groups of one; 0.4 of 5 is two, so half of the high group is the tie's mean
    rows = [[0, 0, 0], [3, 1, 0], [0, 0, 1], [0, 1, 0], [3, 1, 1]]
    figures = analyse(matrix(rows), resamples=0, fraction=0.4)  # type: ignore[arg-type]
    assert figures.high[0] == pytest.approx((3 + 1) / 2)
    assert figures.low[0] == pytest.approx((0 + 1) / 2)
    rng = np.random.default_rng(0)
    noise = [analyse(matrix(rng.integers(0, 4, (5, 60)).tolist()), resamples=0) for _ in range(100)]
    assert abs(np.mean([figures.discrimination.mean() for figures in noise])) < 0.03
    few = [analyse(matrix(rng.integers(0, 4, (5, 3)).tolist()), resamples=0) for _ in range(800)]  # ties in plenty
    assert abs(np.mean([figures.discrimination.mean() for figures in few])) < 0.03


def test_the_permutation_null_is_that_of_noise() -> None:
    rng = np.random.default_rng(1)
    ability = np.linspace(-2, 2, 12)
    good = (rng.normal(size=(12, 40)) < ability[:, None]).astype(float)
    found = report(matrix(good.tolist(), 1), ItemAnalysisSettings(resamples=20)).metrics["by_chance"]
    assert abs(found["mean"]) < 0.05
    assert found["p_value"] == pytest.approx(1 / 101)
    noise = rng.integers(0, 2, (12, 40)).tolist()
    found = report(matrix(noise, 1), ItemAnalysisSettings(resamples=20)).metrics
    assert found["by_chance"]["interval"][0] < found["discrimination_mean"] < found["by_chance"]["interval"][1]
    assert found["by_chance"]["p_value"] > 0.05


def test_a_label_only_where_the_interval_clears_the_cuts() -> None:
    assert sure_label(0.3, 0.9) == 3
    assert sure_label(-0.5, 0.1) == 0
    assert sure_label(0.05, 0.3) is None
    assert sure_label(0.11, 0.17) == 1
    assert sure_label(math.nan, math.nan) is None


def test_correlations_by_hand() -> None:
    """Item (0, 1, 1) and rest (0, 1, 2): r = 1 / sqrt(2/3 * 2) = 0.866; total (0, 2, 3): 5/3 / sqrt(2/3 * 14/3)."""
    figures = analyse(matrix([[0, 0, 0], [1, 1, 0], [1, 1, 1]], 1), resamples=0)
    assert figures.item_rest[0] == pytest.approx(1 / math.sqrt(4 / 3))
    assert figures.point_biserial[0] == figures.item_rest[0]
    assert figures.item_total[0] == pytest.approx((5 / 3) / math.sqrt(28 / 9))


@pytest.mark.parametrize(
    ("n", "size"), [(0, 0), (1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (10, 3), (29, 8), (100, 27), (1000, 270)]
)
def test_group_size(n: int, size: int) -> None:
    assert group_size(n) == size


def test_group_size_is_at_most_half() -> None:
    assert [group_size(n, 0.5) for n in (2, 3, 4, 5)] == [1, 1, 2, 2]
    with pytest.raises(ValueError, match=r"fraction is 0.6; .* half"):
        analyse(matrix([[0], [1]]), fraction=0.6)


def test_sums_that_differ_in_the_last_bit_are_tied() -> None:
    """0.1 + 0.2 and 0.3: tied rests, so the item's own score decides, in either order."""
    for rows in ([[1, 0.1, 0.2], [0, 0.3, 0.0]], [[0, 0.1, 0.2], [1, 0.3, 0.0]]):
        assert analyse(matrix(rows, 1), resamples=0).discrimination[0] == 1


def test_a_missing_score_takes_no_part() -> None:
    nan = math.nan
    figures = analyse(matrix([[nan, 3, 3], [0, 0, 0], [3, 2, 2], [nan, nan, nan]]), resamples=50)
    assert figures.n.tolist() == [2, 3, 3]
    assert figures.difficulty[0] == 1.5
    assert figures.discrimination[0] == 1
    alone = analyse(matrix([[nan], [2]]), resamples=50)
    assert alone.group.tolist() == [0]
    assert math.isnan(alone.discrimination[0])
    assert math.isnan(alone.interval_low[0])


def test_the_interval_holds_the_index_and_is_drawn_by_the_seed() -> None:
    generator = np.random.default_rng(3)
    ability = generator.normal(size=(40, 1))
    data = matrix(np.clip(np.round(1.5 + ability + generator.normal(size=(40, 12))), 0, 3).tolist())
    one, other = analyse(data, seed=1), analyse(data, seed=1)
    assert (one.interval_low == other.interval_low).all()
    assert (one.interval_low <= one.discrimination).all()
    assert (one.discrimination <= one.interval_high).all()
    assert (one.interval_low != analyse(data, seed=2).interval_low).any()


def test_the_interval_by_hand() -> None:
    """Two candidates: half of the resamples hold both (index 1), the others one of them twice (index 0)."""
    figures = analyse(matrix([[0], [3]]), resamples=500)
    assert (figures.interval_low[0], figures.interval_high[0]) == (0, 1)


def test_labels_and_their_edges() -> None:
    values = [-1, 0, 0.1, 0.1 + 1e-12, 0.1001, 0.175, 0.18, 0.25, 0.2501, 1]
    assert [label(value) for value in values] == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert label(math.nan) is None
    assert distribution([0, 3, 3, None]) == {
        "Low": 1, "Relatively low": 0, "Relatively high": 0, "High": 2, "none": 1,
    }  # fmt: skip
    with pytest.raises(ValueError, match="three that rise"):
        check_cuts([0.2, 0.1, 0.3])


def test_set_level_by_hand() -> None:
    """Means 0, 50, 100 of 100: mean 50, variance (2500 + 0 + 2500)/2; every resample tells all three apart."""
    figures = set_level(matrix([[0, 0], [1.5, 1.5], [3, 3]]))
    assert figures.means == {"c0": 0, "c1": 50, "c2": 100}
    assert (figures.mean, figures.variance, figures.separability, figures.pairs) == (50, 2500, 1, 3)
    assert figures.variance_interval == (2500, 2500)
    alone = set_level(matrix([[1, 2]]))
    assert (alone.mean, alone.variance, alone.separability) == (50, None, None)


def test_two_sets_are_compared() -> None:
    strong, weak = matrix([[0] * 6, [3] * 6]), matrix([[1] * 6, [2] * 6])
    found = compare(strong, weak, fraction=0.27)
    assert found.variance == pytest.approx(5000 - 100**2 / 9 / 2)
    assert found.variance_interval is not None
    assert found.variance_interval[0] > 0
    assert found.discrimination == pytest.approx(2 / 3)
    reordered = Matrix(candidates=weak.candidates[::-1], items=weak.items, scores=weak.scores[::-1], max_score=3)
    assert compare(strong, reordered, fraction=0.27) == found
    with pytest.raises(ValueError, match="only one of the two sets has candidate 'c2'"):
        compare(strong, matrix([[1], [2], [3]]), fraction=0.27)


def test_short_form_finds_the_items_that_carry_the_ranking() -> None:
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 2, size=(12, 40)).astype(float)
    scores[:, 7] = np.arange(12) / 4  # one item that orders them all
    scores[:, 8:20] = scores[:, [7]]
    form = short_form(matrix(scores.tolist()), 1)
    assert form.items == (7,)
    assert form.spearman is not None
    assert form.spearman_random is not None
    assert form.spearman > 0.95
    assert form.spearman > form.spearman_random
    whole = short_form(matrix(scores.tolist()), 40)
    assert (whole.spearman, whole.spearman_rest) == (1, None)
    assert whole.kendall == pytest.approx(1)
    with pytest.raises(ValueError, match="41 items was asked for; the matrix has 40"):
        short_form(matrix(scores.tolist()), 41)


def test_short_form_of_candidates_that_are_all_equal() -> None:
    form = short_form(matrix([[1, 1], [1, 1]]), 1)
    assert (form.spearman, form.kendall, form.pearson) == (None, None, None)


def simulated(candidates: int, items: int, seed: int = 1) -> tuple[Matrix, np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    theta, b = generator.normal(size=candidates), generator.normal(size=items)
    a = np.exp(generator.normal(0, 0.4, items))
    p = 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    return matrix((generator.random(p.shape) < p).astype(float).tolist(), 1), a, b, theta


def test_the_fit_recovers_simulated_parameters() -> None:
    data, a, b, theta = simulated(500, 1000)
    found = irt.fit(data)
    assert found.converged
    assert np.corrcoef(found.slopes, a)[0, 1] > 0.9
    assert np.corrcoef(found.difficulties, b)[0, 1] > 0.9
    assert np.corrcoef(found.abilities, theta)[0, 1] > 0.9
    # not only in order: the scale is the population's
    assert abs(np.mean(found.difficulties - b)) < 0.1
    assert abs(np.std(found.abilities) - 1) < 0.1


@pytest.mark.parametrize(("candidates", "items"), [(30, 300), (12, 400)])
def test_locations_do_not_drift(candidates: int, items: int) -> None:
    """Easy items: a prior mean of 0 for b had drawn -1.97 to -0.31, and the abilities up by 1.55."""
    rng = np.random.default_rng(3)
    theta = rng.normal(size=candidates)
    theta -= theta.mean()
    b = rng.normal(-1.97, 0.8, items)
    scores = (rng.random((candidates, items)) < 1 / (1 + np.exp(-(theta[:, None] - b)))).astype(float)
    found = irt.fit(matrix(scores.tolist(), 1))
    assert found.converged
    assert float(found.difficulties.mean()) == pytest.approx(float(b.mean()), abs=0.15)
    assert float(found.abilities.mean()) == pytest.approx(0.0, abs=0.05)


def test_the_fit_with_gaps_is_that_of_the_items_that_were_asked() -> None:
    data, a, b, _ = simulated(400, 60)
    scores = data.scores.copy()
    scores[np.random.default_rng(2).random(scores.shape) < 0.3] = math.nan
    found = irt.fit(matrix(scores.tolist(), 1))
    assert np.corrcoef(found.slopes, a)[0, 1] > 0.85
    assert np.corrcoef(found.difficulties, b)[0, 1] > 0.95


def test_information_by_hand() -> None:
    """At theta = b, P = 1/2, so the information is a^2 / 4."""
    fit = irt.Fit(
        slopes=np.array([2.0]),
        difficulties=np.array([0.5]),
        abilities=np.zeros(1),
        ability_sds=np.zeros(1),
        iterations=1,
        converged=True,
    )
    assert fit.probability(np.array([0.5])).tolist() == [[0.5]]
    assert fit.information(np.array([0.5])).tolist() == [[1.0]]


def test_items_that_everybody_or_nobody_solved_stay_finite() -> None:
    found = irt.fit(matrix([[0, 1, 1], [0, 1, 0], [0, 1, 1], [0, 1, 0]], 1))
    assert np.isfinite(found.slopes).all()
    assert found.difficulties[0] > found.difficulties[2] > found.difficulties[1]


def test_a_matrix_of_1165_items_and_29_candidates_in_under_5_seconds() -> None:
    generator = np.random.default_rng(1)
    ability = generator.normal(size=(29, 1))
    scores = np.clip(np.round(1.5 + ability + generator.normal(size=(29, 1165))), 0, 3)
    import scipy.stats  # noqa: F401  (its import is no part of the analysis)

    start = time.process_time()
    found = report(matrix(scores.tolist()), ItemAnalysisSettings(short=20))
    assert time.process_time() - start < 5
    assert len(found.rows) == 1165
    assert sum(found.metrics["labels"].values()) == 1165
    assert found.metrics["short_form"]["spearman"] > 0.9
    assert found.metrics["groups"]["high"] == [8]


def test_few_candidates_are_warned_of_and_negative_items_flagged() -> None:
    found = report(matrix([[0, 3, 3], [3, 0, 0]]), ItemAnalysisSettings(resamples=10))
    assert "multiples of 1/3" in found.metrics["warnings"][0]
    assert [row["negative"] for row in found.rows] == [True, False, False]
    one = report(matrix([[0, 3]]), ItemAnalysisSettings(resamples=10))
    assert one.rows[0]["discrimination"] is None
    assert "discrimination needs two" in one.metrics["warnings"][0]
    apart = report(matrix([[0, np.nan], [np.nan, 3]]), ItemAnalysisSettings(resamples=10))
    assert "give records of the same items" in apart.metrics["warnings"][0]


def test_labels_by_generator() -> None:
    found = report(
        matrix([[0, 3, 0], [3, 3, 3], [0, 3, 1]]),
        ItemAnalysisSettings(resamples=0),
        groups={"i0": "alpha", "i1": "beta"},
    ).metrics["by"]
    assert (found["alpha"]["labels_of_the_index"]["High"], found["beta"]["labels_of_the_index"]["Low"]) == (1, 1)
    assert found["alpha"]["labels"]["none"] == 1  # no interval tells it from Low
    assert found["alpha"]["shares"]["High"] == 1


def test_csv_there_and_back(tmp_path: Path) -> None:
    data = matrix([[0, math.nan, 2.5], [3, 1, 0.1]])
    (tmp_path / "m.csv").write_text(to_csv(data), encoding="utf-8")
    again = read_csv(tmp_path / "m.csv", 3)
    assert (again.candidates, again.items) == (data.candidates, data.items)
    assert np.array_equal(again.scores, data.scores, equal_nan=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c,q\na,x\n", r"m.csv:2, column q: 'x' is no score; it must be a number in 0..3, or blank"),
        ("c,q\na,4\n", r"'4' is no score"),
        ("c,q\na,-1\n", r"'-1' is no score"),
        ("c,q\na,1,2\n", r"m.csv:2: the row has 3 cells, but the header names 2"),
        ("c,q\na,1\na,2\n", r"the candidate 'a' stands twice"),
        ("c,q,q\na,1,2\n", r"the item 'q' stands twice"),
        ("c,q\n", r"holds no matrix"),
        ("", r"holds no matrix"),
    ],
)
def test_a_table_that_is_no_matrix(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_csv(tmp_path / "m.csv", 3)


def test_records_of_exams(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"item_id": "1", "correct": true}\n{"item_id": "2", "correct": false}\n')
    (tmp_path / "b.jsonl").write_text('{"item_id": "2", "correct": true}\n')
    data = from_records({"a": tmp_path / "a.jsonl", "b": tmp_path / "b.jsonl"})
    assert (data.items, data.max_score) == (("1", "2"), 1)
    assert np.array_equal(data.scores, [[1, 0], [math.nan, 1]], equal_nan=True)
    (tmp_path / "c.jsonl").write_text('{"item_id": "1", "score": 2, "max_score": 3}\n')
    with pytest.raises(ValueError, match="different exams: a is scored by 'correct'; c is scored by 'score'"):
        from_records({"a": tmp_path / "a.jsonl", "c": tmp_path / "c.jsonl"})
    with pytest.raises(ValueError, match="no field 'rating'"):
        from_records({"a": tmp_path / "a.jsonl"}, "rating")
