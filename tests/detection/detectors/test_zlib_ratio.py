from __future__ import annotations

import math
import zlib

import pytest

from detection.detectors.zlib_ratio import ZlibRatio
from detection.method import Context, Text


def test_the_mean_is_divided_by_compressed_bytes(tokens, drive):
    # "ab": 2 bytes of header, 3 + 8 + 8 + 7 bits of deflate in 4 bytes, 4 of checksum
    scores, _ = drive(ZlibRatio(Context()).examine(Text(id="a", text="ab")), lambda _: tokens([-2.0, -4.4]))
    assert scores["zlib"] == pytest.approx(-3.2 / 10)


def test_each_part_is_weighed_against_its_own_text(tokens, drive):
    table = tokens([-1.0, -2.0], ["prompt", "answer"])
    text = Text(id="a", text="Question: why?\nAnswer: é", prompt="Question: why?\nAnswer:")
    scores, _ = drive(ZlibRatio(Context()).examine(text), lambda _: table)
    for suffix, mean, part in (("", -1.5, text.text), ("/prompt", -1.0, text.prompt), ("/answer", -2.0, " é")):
        assert scores["zlib" + suffix] == pytest.approx(mean / len(zlib.compress(part.encode())))


def test_a_repetitive_text_needs_a_higher_probability_to_look_known(tokens, drive):
    detector = ZlibRatio(Context())
    dull, _ = drive(detector.examine(Text(id="a", text="ha " * 40)), lambda _: tokens([-1.0]))
    rich, _ = drive(
        detector.examine(Text(id="b", text="Sphinx of black quartz, judge my vow")), lambda _: tokens([-1.0])
    )
    assert rich["zlib"] > dull["zlib"]


def test_an_empty_text_is_unscorable(tokens, drive):
    scores, _ = drive(ZlibRatio(Context()).examine(Text(id="a", text="")), lambda _: tokens([]))
    assert math.isnan(scores["zlib"])
