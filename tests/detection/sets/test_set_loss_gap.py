from __future__ import annotations

import json

import pytest

from detection import sets
from detection.method import Context, Text


def build(**options):
    return sets.build(["loss_gap"], Context(seed=1, options={"loss_gap": options}))[0]


def losses(tokens):
    """The loss of a text is the number in it; two tokens."""
    return lambda demand: tokens([-float(demand.prompt.split()[-1])] * 2)


def texts_file(write_text, name, numbers):
    return str(write_text(name, "".join(json.dumps({"text": f"loss {n}"}) + "\n" for n in numbers)))


def test_the_three_differences_and_their_signs(tokens, drive, write_text):
    """The test set leaked (loss 1), new items have loss 3, the training set, untouched, has loss 2.5."""
    test = build(
        reference=texts_file(write_text, "new.jsonl", [3, 3, 3]), train=texts_file(write_text, "train.jsonl", [2.5])
    )
    texts = [Text(id=i, text=f"loss {n}", label=label) for i, (n, label) in enumerate([(1, 1), (1.5, 1), (3, 0)])]
    found, asked = drive(test.examine(texts, [{} for _ in texts]), losses(tokens))
    assert [len(step) for step in asked] == [3, 3, 1]
    assert found["per_example"] == 3 - 1.25  # ours: positive means leakage
    assert found["D1"] == 1.25 - 3  # Skywork's: negative means that the test set leaked
    assert found["D2"] == 1.25 - 2.5
    assert (found["n"], found["n_test"], found["n_reference"], found["n_train"]) == (3, 2, 3, 1)
    assert found["p_value"] is None  # one untouched item
    assert "fewer than 2" in found["reason"]


def test_losses_of_the_audit_are_not_asked_for_again(drive):
    rows = [{"loss": -1.0, "tokens": 2.0}, {"loss": -4.0, "tokens": 8.0}, {"loss": None, "tokens": 0.0}]
    texts = [Text(id=0, text="a", label=1), Text(id=1, text="b", label=0), Text(id=2, text="", label=0)]
    found, asked = drive(build().examine(texts, rows), None)
    assert asked == []
    assert (found["per_example"], found["per_token"], found["n"]) == (3.0, 3.0, 2)
    assert (found["D1"], found["D2"]) == (None, None)


def test_without_labels_the_test_is_skyworks_d1(tokens, drive, write_text):
    test = build(reference=texts_file(write_text, "new.jsonl", [3, 3.2, 3.1]))
    texts = [Text(id=i, text=f"loss {n}") for i, n in enumerate([1, 1.2, 1.1])]
    found, _ = drive(test.examine(texts, [{}, {}, {}]), losses(tokens))
    assert found["D1"] == pytest.approx(-2.0)
    assert found["p_value"] < 0.001
    assert found["per_example"] is None
    assert "reason" not in found
    alone, _ = drive(build().examine(texts, [{}, {}, {}]), losses(tokens))
    assert alone["p_value"] is None
    assert alone["reason"] == "no untouched item with a loss"


def test_a_file_that_is_wrong_is_named_before_anything_is_asked(write_text):
    with pytest.raises(ValueError, match=r"bad.jsonl:1: no key 'text'"):
        build(reference=str(write_text("bad.jsonl", '{"question": 1}\n')))
    with pytest.raises(ValueError, match=r"nowhere.jsonl: can't be read"):
        build(train="/nowhere.jsonl")
