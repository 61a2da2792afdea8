from __future__ import annotations

import json
import math

import pytest

from detection import detectors
from detection.audit import audit_dialogue, score_lines, summarise
from detection.method import Context, Detector, Text, table
from serving.records import Ask, Completion, Sampling, Score


class Reversed(Detector):
    """Asks for the shared table, then for the reversed text and a greeting together, then for the table again."""

    name = "reversed"
    version = 1
    needs = ("log_probabilities", "generations")
    passes = 2
    paper = "none"

    def examine(self, text):
        plain = yield table(text, self.context.full_vocabulary)
        hello = Ask(role="candidate", prompt="hello", sampling=Sampling(max_tokens=1))
        backward, reply = yield [Score(role="candidate", prompt=text.text[::-1]), hello]
        again = yield table(text, self.context.full_vocabulary)
        assert again is plain
        assert reply.text == "hi"
        nothing = yield []
        assert nothing == []
        return {"reversed": plain.logprobs[0] - backward.logprobs[0]}


def test_a_text_is_scored_once_for_all_detectors(tokens, drive):
    text = Text(id="a", text="one two", label=0, prompt="one")
    scored = tokens(
        [-8.0, -1.0, -3.0, -5.0],
        ["bos", "prompt", "answer", "answer"],
        means=[-2.0] * 4,
        stds=[1.0, 1.0, 1.0, 2.0],
        dropped=6,
    )
    chosen = detectors.build(["loss", "zlib", "min_k", "min_k_plus_plus"])
    record, yielded = drive(audit_dialogue(text, chosen), lambda _: scored)
    assert yielded == [[table(text, True)]]
    assert (record["id"], record["label"], record["tokens"], record["dropped"]) == ("a", 0, 3, 6)
    assert record["part_tokens"] == {"": 3, "/prompt": 1, "/answer": 2}
    assert record["scores"]["loss"] == -3.0
    assert record["scores"]["loss/answer"] == -4.0
    assert record["scores"]["min_k@20/prompt"] == -1.0
    assert record["scores"]["min_k_plus_plus@60"] == -1.25  # z = (1, -1, -1.5): ceil(0.6 * 3) = 2
    assert len(record["scores"]) == 3 * (1 + 1 + 7 + 7)


def test_detectors_advance_together_and_nothing_is_asked_twice(tokens, drive):
    text = Text(id="a", text="abc")

    def answer(demand):
        if isinstance(demand, Ask):
            return Completion(text="hi", finish_reason="stop", prompt_tokens=1, output_tokens=1)
        return tokens([-1.0 if demand.prompt == "abc" else -4.0])

    pair = [Reversed(Context()), *detectors.build(["loss"]), Reversed(Context())]
    record, yielded = drive(audit_dialogue(text, pair), answer)
    assert [len(step) for step in yielded] == [1, 2]
    assert record["scores"] == {"reversed": 3.0, "loss": -1.0}


def test_a_detector_added_asks_for_no_more_of_the_others(tokens, drive):
    text = Text(id="a", text="abc")
    alone, asked = drive(audit_dialogue(text, detectors.build(["loss"])), lambda _: tokens([-1.0]))
    both, also = drive(audit_dialogue(text, detectors.build(["zlib", "loss"])), lambda _: tokens([-1.0]))
    assert asked == also
    assert both["scores"]["loss"] == alone["scores"]["loss"]
    assert list(both["scores"]) == ["zlib", "loss"]


def test_unscorable_texts_are_null_and_counted(tokens, drive):
    records = []
    for i, logprobs in enumerate([[], [-1.0], [-2.0, -3.0], [-math.inf, -1.0]]):
        text = Text(id=str(i), text="t", label=1 if i == 1 else 0)
        records.append(drive(audit_dialogue(text, detectors.build(["loss"])), lambda _, lp=logprobs: tokens(lp))[0])
    assert [record["tokens"] for record in records] == [0, 1, 2, 2]
    assert [record["scores"]["loss"] for record in records] == [None, -1.0, -2.5, None]
    metrics = summarise(records)
    assert list(metrics) == ["loss"]
    assert (metrics["loss"]["n"], metrics["loss"]["n_members"], metrics["loss"]["n_unscorable"]) == (2, 1, 2)
    assert metrics["loss"]["auc"] == 1.0


def test_an_error_inside_a_detector_is_not_swallowed(tokens, drive):
    chosen = detectors.build(["min_k_plus_plus"])
    with pytest.raises(ValueError, match="without moments"):
        drive(audit_dialogue(Text(id="a", text="ab"), chosen), lambda _: tokens([-1.0]))


def record(i, label, **scores):
    return {"id": str(i), "label": label, "tokens": 3, "part_tokens": {"": 3}, "dropped": 0, "scores": scores}


def test_metrics_hold_method_names_only_and_are_corrected_over_all_of_them():
    records = [record(i, i % 2, good=float(i % 2), dull=float(i // 2 % 2)) for i in range(80)]
    metrics = summarise(records)
    assert list(metrics) == ["good", "dull"]
    assert metrics["good"]["auc"] == 1.0
    assert metrics["dull"]["auc"] == 0.5
    assert metrics["good"]["p_value_adjusted"] == pytest.approx(2 * metrics["good"]["p_value"])
    assert metrics["dull"]["auc_ci"][0] < 0.5 < metrics["dull"]["auc_ci"][1]
    assert json.loads(json.dumps(metrics, allow_nan=False)) == metrics
    assert summarise(records) == metrics
    assert summarise([]) == {}


def test_without_labels_there_are_reasons_instead_of_metrics():
    metrics = summarise([record(0, None, loss=-1.0), record(1, None, loss=-2.0)])
    assert metrics["loss"]["auc"] is None
    assert metrics["loss"]["p_value_adjusted"] is None
    assert metrics["loss"]["reason"] == "no labelled text with a score"


def test_a_name_that_some_texts_lack_counts_as_unscorable():
    rows = [record(0, 1, a=1.0), record(1, 0, a=0.0, b=1.0)]
    assert summarise(rows)["b"]["n_unscorable"] == 1


def test_score_lines_keep_order_and_characters():
    lines = list(score_lines([record("é", 1, loss=-1.5), record("a", None, loss=None)]))
    assert lines[0] == '{"id": "é", "scores": {"loss": -1.5}}\n'
    assert [json.loads(line)["scores"]["loss"] for line in lines] == [-1.5, None]
