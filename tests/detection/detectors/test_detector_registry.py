from __future__ import annotations

import subprocess
import sys

import pytest

from detection import detectors
from detection.method import Text


def test_every_name_leads_to_a_detector_of_that_name():
    for name in detectors.names():
        found = detectors.detector_class(name)
        assert found.name == name
        assert found.version >= 1
        assert found.passes >= 1
        assert found.needs
        assert "arXiv" in found.paper
        assert found.__doc__


@pytest.mark.parametrize(
    ("wrong", "right"), [("mink", "min_k"), ("Min-K", "min_k"), ("min_k++", "min_k"), ("los", "loss")]
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong, right):
    with pytest.raises(ValueError, match=f"did you mean '{right}'"):
        detectors.detector_class(wrong)


def test_a_hopeless_name_is_answered_with_the_list():
    with pytest.raises(ValueError, match="there are: loss, zlib, min_k, min_k_plus_plus"):
        detectors.build(["qqqqqq"])


def test_no_method_is_an_error():
    with pytest.raises(ValueError, match="no detection method"):
        detectors.build([])


def test_a_method_named_twice_is_built_once_and_order_is_kept():
    assert [d.name for d in detectors.build(["zlib", "loss", "zlib"])] == ["zlib", "loss"]


def test_one_detector_that_needs_moments_makes_all_ask_for_them():
    text = Text(id="a", text="one two")
    for methods, moments in ((["loss", "min_k"], False), (["loss", "min_k_plus_plus"], True)):
        asked = {next(detector.examine(text)) for detector in detectors.build(methods)}
        assert [demand.moments for demand in asked] == [moments]


def test_the_registry_and_the_detectors_import_nothing_heavy():
    code = (
        "import sys, pathlib, detection.detectors as d; from serving.model.spec import ModelSpec;"
        "known = tuple(map(str, range(12)));"
        "c = d.Context(non_members=known, members=known, reference=True, benchmark='b', corpus=pathlib.Path('c'), "
        "model=ModelSpec(path='m'));"
        "d.build(d.names(), c);"
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'torch', 'statsmodels') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
