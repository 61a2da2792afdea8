"""Exams with a benchmark of their own: frozen apart, leaked by nobody, and no input of what was done before."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks.chosen import BenchmarkConfig
from evaluation.exam_set import read_exam
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import load_experiment, resolve
from proctor.runner.plan import find, plan
from proctor.stages.freeze import draw_exam
from serving.files import read_json, read_jsonl
from tests.proctor.command import experiment, proctor, write_experiment
from tests.proctor.scripted import do, scripted

Write = Callable[[str, str], Path]

SUMS = [
    {"question": f"What is {i} plus {i}?", "choices": [f"{2 * i} it is", "none of these"], "answer": "A"}
    for i in range(6)
]
GSM8K = [{"question": f"Ann has {i} pens and buys 4.", "answer": f"So {i + 4}.\n#### {i + 4}"} for i in range(5)]


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def sums(write_text: Write) -> dict[str, Any]:
    return {"format": "jsonl", "path": str(write_text("sums.jsonl", jsonl(SUMS)))}


def digests(value: dict[str, Any]) -> dict[str, str]:
    stages = plan(resolve(Experiment.model_validate(value)))
    outputs = {stage.name: f"outputs of {stage.name}" for stage in stages}
    return {stage.name: stage.digest(outputs) for stage in stages}


def test_another_exam_leaves_everything_else_current(tiny_model: Path, sums: dict[str, Any], write_text: Write) -> None:
    value = experiment(tiny_model)
    before = digests(value)
    assert {"exam", "train.normal", "train.pt", "static.pt", "kieval.pt", "detect.base"} <= set(before)
    value["exams"]["sums"] = {"protocol": "static", "benchmark": sums}
    after = digests(value)
    assert set(after) - set(before) == {"exam.sums", "sums.normal", "sums.pt"}
    assert {name for name in before if before[name] != after[name]} == {"report"}

    write_text("sums.jsonl", jsonl(SUMS[:5]))
    changed = digests(value)
    assert {name for name in after if after[name] != changed[name]} == {"exam.sums"}  # and what reads its outputs


def test_stages_read_the_items_of_their_exam(tiny_model: Path, sums: dict[str, Any]) -> None:
    value = experiment(tiny_model)
    value["exams"]["sums"] = {"protocol": "kieval", "benchmark": sums, "prefilter": True}
    stages = plan(Experiment.model_validate(value))
    assert find(stages, "train.pt").needs == ("exam",)
    assert find(stages, "static.pt").needs == ("exam", "train.pt")
    assert find(stages, "prefilter.sums").needs == ("exam.sums",)
    assert find(stages, "sums.pt").needs == ("exam.sums", "train.pt", "prefilter.sums")


class Rows(HTMLParser):
    """The cells of every table row of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three exams: one of other items that stands first, the experiment's own two. Paths are relative to its folder."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "sums.jsonl").write_text(jsonl(SUMS), encoding="utf-8")
    (folder / "gsm.jsonl").write_text(jsonl(GSM8K), encoding="utf-8")
    value = scripted(
        models={
            "m": {"path": "none", "engine": "scripted"},
            "q": {
                "path": "other",
                "engine": "scripted",
                "engine_args": {"replies": [{"match": "Ann has 3 pens", "reply": "3 and 4 make 7.\n#### 7"}]},
            },
        },
        exams={
            "gsm": {
                "protocol": "static",
                "benchmark": {"format": "gsm8k", "path": str(folder / "gsm.jsonl")},
                "options": {"mode": "generate"},
            },
            "static": {"protocol": "static"},
            "kieval": {"protocol": "kieval", "limit": 2, "options": {"rounds": 1}},
            "sums": {
                "protocol": "kieval",
                "benchmark": {"format": "jsonl", "path": str(folder / "sums.jsonl"), "limit": 4},
                "limit": 3,
                "candidates": ["one"],
                "options": {"rounds": 1},
            },
        },
        detection=None,
    )
    return do(folder, value)


def test_its_items_have_no_halves(run: Path) -> None:
    folder = run / "stages" / "exam.gsm"
    assert sorted(path.name for path in folder.glob("*.jsonl")) == ["exemplars.jsonl", "items.jsonl"]
    exam = read_exam(folder)
    assert [item.answer for item in exam.items] == ["4", "5", "6", "7", "8"]
    assert not exam.halved
    assert exam.leaked == frozenset()
    rows = read_jsonl(run / "stages" / "gsm.two" / "records.jsonl")
    assert [row["item_id"] for row in rows] == [item.id for item in exam.items]
    assert {row["half"] for row in rows} == {"all"}
    assert [row["correct"] for row in rows] == [False, False, False, True, False]
    assert read_exam(run / "exam").halved


def test_two_limits(run: Path) -> None:
    items = read_exam(run / "stages" / "exam.sums").items
    assert len(items) == 4  # benchmark.limit draws
    rows = read_jsonl(run / "stages" / "sums.one" / "records.jsonl")
    assert [row["item_id"] for row in rows] == [item.id for item in items[:3]]  # limit takes the first
    assert not (run / "stages" / "sums.two").exists()


def test_the_report_has_them_apart(run: Path) -> None:
    summary = read_json(run / "report" / "summary.json")
    two = summary["candidates"]["two"]
    assert two["exams"]["gsm"]["all"]["accuracy"] == pytest.approx(1 / 5)
    assert set(two["exams"]["static"]) == {"leaked", "untouched"}
    # the contamination table's figures are those of the first exam of leaked items, though gsm stands before it
    assert two["accuracy_leaked"] == two["exams"]["static"]["leaked"]["accuracy"]
    one = summary["candidates"]["one"]
    assert one["kieval"] == one["exams"]["kieval"]["leaked"]["score"]
    assert one["exams"]["sums"]["all"]["n"] == 3


def test_all_exams_in_one_table(run: Path) -> None:
    rows = Rows((run / "report" / "index.html").read_text(encoding="utf-8")).rows
    assert ["exam", "items", "figure", "n", "one", "two"] in rows
    # Wilson's interval of 1 in 5 and of 0 in 5
    assert ["gsm", "all", "accuracy", "5", "0.000 [0.000, 0.434]", "0.200 [0.036, 0.624]"] in rows
    shown = {tuple(row[:3]) for row in rows}
    assert {("static", "leaked", "accuracy"), ("static", "untouched", "accuracy")} <= shown
    assert {("kieval", "leaked", "score"), ("kieval", "untouched", "score")} <= shown
    (sums,) = [row for row in rows if row[:2] == ["sums", "all"]]
    assert (sums[2], sums[3], sums[5]) == ("score", "3", "-")


def test_the_figure_is_part_of_the_report(run: Path) -> None:
    drawn = (run / "report" / "figures" / "accuracy_against_kieval.svg").read_text(encoding="utf-8")
    assert (run / "report" / "figures" / "accuracy_against_kieval.png").stat().st_size > 0
    summary = read_json(run / "report" / "summary.json")
    assert summary["accuracy_against_kieval"] == {
        "caption": "no regression: 2 of the candidates have both figures, a line needs 3",
        "n": 2,
        **dict.fromkeys(("slope", "intercept", "r", "r_interval")),
        "reason": "2 of the candidates have both figures, a line needs 3",
    }
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "below the line" not in page  # there is none
    points = drawn.count("<use ")  # the page has the same drawing, its ids made its own
    figure = page.partition('<figure id="figure-accuracy_against_kieval">')[2].partition("</figure>")[0]
    assert points > 0
    assert figure.count("<use ") == points
    assert "Published figures" not in page  # there are none for the embedded exam
    before = drawn
    assert proctor("report", run).returncode == 0
    assert (run / "report" / "figures" / "accuracy_against_kieval.svg").read_text(encoding="utf-8") == before


def test_the_page_of_a_run_whose_usage_lacks_a_key(run: Path) -> None:
    file = run / "stages" / "gsm.one" / "usage.json"
    text = file.read_text(encoding="utf-8")
    usage = json.loads(text)
    assert usage["roles"]["candidate"]["computed_tokens"] == usage["roles"]["candidate"]["prompt_tokens"] > 0
    del usage["roles"]["candidate"]["computed_tokens"]  # as version 0.1.0 wrote it
    file.write_text(json.dumps(usage), encoding="utf-8")
    result = proctor("report", run)
    file.write_text(text, encoding="utf-8")
    assert result.returncode == 0, result.stderr


def test_check_shows_each_benchmark(run: Path) -> None:
    result = proctor("check", run / "experiment.yaml")
    assert result.returncode == 0, result.stderr
    assert "=== benchmark embedded: 12 items, 40 exemplars" in result.stdout
    assert f"=== benchmark gsm8k ({run.parent / 'gsm.jsonl'}): 5 items, 0 exemplars" in result.stdout
    assert "--- exam gsm (static): 5 items x 2 candidates" in result.stdout
    assert "--- exam sums (kieval): 3 items x 1 candidates" in result.stdout


def test_people_can_rate_its_replies(run: Path, tmp_path: Path) -> None:
    result = proctor("rate", "export", "--records", run, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    key = read_jsonl(tmp_path / "out" / "key.jsonl")
    assert {row["benchmark"] for row in key} == {"gsm8k", "embedded", "sums"}
    assert sum(row["benchmark"] == "gsm8k" for row in key) == 10


def test_files_become_absolute(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("chat.jsonl", "corpus.txt", "answers.jsonl", "sums.jsonl", "pool.jsonl"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    value = experiment(tiny_model, training={"chat": "chat.jsonl", "chat_rows": 4})
    value["candidates"]["pt"]["options"] = {"corpus": "corpus.txt", "repeats": 3}
    value["exams"]["pairs"] = {
        "protocol": "pairwise",
        "options": {"baseline": "answers.jsonl", "retries": 1},
        "benchmark": {"format": "jsonl", "path": "sums.jsonl", "exemplars": "pool.jsonl"},
    }
    value["exams"]["missing"] = {"protocol": "pairwise", "options": {"baseline": "nowhere.jsonl"}}
    found = load_experiment(write_experiment(tmp_path, value))
    assert found.training == {"chat": str(tmp_path / "chat.jsonl"), "chat_rows": 4}
    assert found.candidates["pt"].options == {"corpus": str(tmp_path / "corpus.txt"), "repeats": 3}
    assert found.exams["pairs"].options == {"baseline": str(tmp_path / "answers.jsonl"), "retries": 1}
    own = found.exams["pairs"].benchmark
    assert own is not None
    assert (own.path, own.exemplars) == (str(tmp_path / "sums.jsonl"), str(tmp_path / "pool.jsonl"))
    assert found.exams["missing"].options == {"baseline": "nowhere.jsonl"}  # the protocol will say what is wrong
    assert resolve(found) == found


def test_where_a_baseline_lies_is_no_input(sums: dict[str, Any], write_text: Write) -> None:
    def digest(baseline: Path) -> str:
        options = {"baseline": str(baseline), "retries": 1}
        exams = {"pairs": {"protocol": "pairwise", "benchmark": sums, "options": options}}
        return digests(scripted(exams=exams))["pairs.one"]

    answers = jsonl([{"instruction": "What?", "output": "That."}])
    first = digest(write_text("here/answers.jsonl", answers))
    assert digest(write_text("there/answers.jsonl", answers)) == first
    assert digest(write_text("there/answers.jsonl", answers.replace("That", "This"))) != first


def test_exemplars_come_from_a_dev_split_if_there_is_one(tmp_path: Path, write_text: Write) -> None:
    sheet = "".join(f"What is {i} + 1?,{i},{i + 1},{i + 2},{i + 3},B\n" for i in range(3))
    folder = write_text("mmlu/test/counting_test.csv", sheet).parents[1]

    def draw(path: Path, **options: Any) -> Any:
        own = {"protocol": "static", "options": options, "benchmark": {"format": "mmlu", "path": str(path)}}
        return draw_exam(Experiment.model_validate(scripted(exams={"own": own})), "own")

    without = draw(folder)
    assert (len(without.items), without.exemplars) == (3, [])
    assert "no exemplars: " in without.notes[-1]
    with pytest.raises(ValueError, match="has no file dev"):
        draw(folder, shots=1)
    write_text("mmlu/dev/counting_dev.csv", sheet.replace("What is", "Say what is"))
    assert [item.split for item in draw(folder, shots=1).exemplars] == ["dev"] * 3
    # the rest of a single file is no pool, whatever its name tells
    loose = write_text("loose/counting.csv", sheet)
    assert draw(loose).exemplars == []
    assert draw(loose).notes == ()


def test_exemplars_of_another_format(tmp_path: Path, sums: dict[str, Any], write_text: Write) -> None:
    """A benchmark in its publisher's format, exemplars as a build writes them."""
    sheet = write_text("mmlu/test/counting_test.csv", "What is 1 + 1?,1,2,3,4,B\n").parents[1]
    own = {"format": "mmlu", "path": str(sheet), "exemplars": sums["path"]}

    def drawn(benchmark: dict[str, Any]) -> Any:
        exam = {"protocol": "static", "options": {"shots": 1}, "benchmark": benchmark}
        return draw_exam(Experiment.model_validate(scripted(exams={"own": exam})), "own")

    with pytest.raises(ValueError, match=r"sums\.jsonl"):
        drawn(own)
    assert len(drawn({**own, "exemplar_format": "jsonl"}).exemplars) == 6
    with pytest.raises(ValueError, match="exemplar_format is the format of 'exemplars'"):
        drawn({"format": "mmlu", "path": str(sheet), "exemplar_format": "jsonl"})
    # what was frozen before the key existed is not frozen again
    assert "exemplar_format" not in BenchmarkConfig(format="mmlu").model_dump(mode="json")
    assert BenchmarkConfig(exemplars="x", exemplar_format="arc").model_dump()["exemplar_format"] == "arc"


def test_wrong_benchmarks_of_an_exam(tmp_path: Path, sums: dict[str, Any], write_text: Write) -> None:
    broken = write_text("broken.jsonl", jsonl([*SUMS, {"question": "And?", "choices": ["a", "b"], "answer": "Q"}]))
    for own, more, said in (
        (sums, {"items": "leaked"}, "items is 'leaked', but an exam with its own benchmark has no halves"),
        ({**sums, "limit": 7}, {}, "exams.own.benchmark.limit is 7, but the benchmark has 6 items"),
        ({**sums, "path": str(tmp_path / "no.jsonl")}, {}, "no.jsonl does not exist"),
        ({**sums, "path": str(broken)}, {}, "broken.jsonl:7"),
        ({**sums, "pth": "x"}, {}, "did you mean 'path'"),
        ({**sums, "format": "gsm"}, {}, "there is no benchmark format 'gsm'"),
        ({**sums, "columns": {"question": "q"}}, {}, "knows its own; leave them out, or use format: table"),
    ):
        value = scripted(exams={"own": {"protocol": "static", "benchmark": own, **more}})
        result = proctor("run", write_experiment(tmp_path, value), "--out", tmp_path / "run")
        assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
        assert result.stderr.startswith("error: ")
        assert said in result.stderr
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["prefilter", "exam.x", "prefilter.x", "detect.x", "train.x"])
def test_names_of_stages_are_no_names_of_exams(name: str) -> None:
    with pytest.raises(ValueError, match=f"exams: '{name}' is the name of a stage"):
        Experiment.model_validate(scripted(exams={name: {"protocol": "static"}}))
    assert Experiment.model_validate(scripted(exams={"exams.x": {"protocol": "static"}}))
