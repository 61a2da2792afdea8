from __future__ import annotations

import math

import pytest

from detection.detectors.reference import Reference
from detection.method import Context, Text

DETECTOR = Reference(Context(reference=True))


def test_without_a_reference_model_there_is_no_detector():
    with pytest.raises(ValueError, match="reference needs reference model: name one with --reference"):
        Reference(Context())


def test_with_equal_tokenizers_it_is_the_difference_of_means(tokens, drive):
    tables = {"candidate": tokens([-1.0, -2.0, -3.0]), "reference": tokens([-2.0, -5.0, -8.0])}
    scores, asked = drive(DETECTOR.examine(Text(id="a", text="abcd")), lambda d: tables[d.role])
    assert scores == {"reference": -2.0 - -5.0}
    assert [(d.role, d.prompt, d.moments) for d in asked[0]] == [
        ("candidate", "abcd", False),
        ("reference", "abcd", False),
    ]


def test_each_model_has_its_own_tokens_and_the_sums_are_compared(tokens, drive):
    # The same -6 nats for the string: two coarse tokens here, six fine ones there. Means (-3 and -1) would differ.
    tables = {"candidate": tokens([-3.0, -3.0]), "reference": tokens([-1.0] * 6)}
    scores, _ = drive(DETECTOR.examine(Text(id="a", text="abcdef")), lambda d: tables[d.role])
    assert scores == {"reference": 0.0}


def test_segments_are_those_of_each_table(tokens, drive):
    tables = {
        "candidate": tokens([-9.0, -1.0, -2.0, -4.0], ["bos", "prompt", "answer", "answer"]),
        "reference": tokens([-1.0, -2.0, -8.0], ["prompt", "prompt", "answer"]),
    }
    scores, _ = drive(DETECTOR.examine(Text(id="a", text="abc", prompt="a")), lambda d: tables[d.role])
    assert scores == {"reference": (-7.0 + 11.0) / 3, "reference/prompt": 2.0, "reference/answer": 1.0}


@pytest.mark.parametrize(("own", "other"), [(1, 0), (0, 1)])
def test_a_text_cut_by_either_context_is_unscorable(own, other, tokens, drive):
    tables = {"candidate": tokens([-1.0], dropped=own), "reference": tokens([-1.0], dropped=other)}
    scores, _ = drive(DETECTOR.examine(Text(id="a", text="abc")), lambda d: tables[d.role])
    assert math.isnan(scores["reference"])


def test_a_table_without_tokens_is_unscorable(tokens, drive):
    tables = {"candidate": tokens([-1.0]), "reference": tokens([])}
    scores, _ = drive(DETECTOR.examine(Text(id="a", text="abc")), lambda d: tables[d.role])
    assert math.isnan(scores["reference"])
