from __future__ import annotations

import subprocess
import sys

import pytest

from evaluation.registry import build, protocol, protocols


def test_every_protocol_has_what_the_interface_asks() -> None:
    assert {"static", "kieval", "mt_bench", "pairwise", "lm_examiner", "idgen"} <= set(protocols())
    for name in protocols():
        kind = protocol(name)
        assert kind.name == name
        assert kind.version >= 1
        assert kind.roles[0] == "candidate"
        options = kind.Options()
        if name != "pairwise":  # it needs a baseline's answers: test_pairwise.py
            assert kind(options, seed=0).prompt_hashes() is not None


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"'kival'; did you mean 'kieval'.*static, .*pairwise"):
        protocol("kival")


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"static.shotz: unknown option; did you mean 'shots'"):
        build("static", {"shotz": 1}, seed=0)
    with pytest.raises(
        ValueError,
        match=r"static.zzz: unknown option; its options: mode, shots, text_format, max_tokens, chain_of_thought",
    ):
        build("static", {"zzz": 1}, seed=0)
    with pytest.raises(ValueError, match=r"static.shots: .*\(it is 'x'\)"):
        build("static", {"shots": "x"}, seed=0)


def test_listing_names_imports_nothing_heavy() -> None:
    code = (
        "import sys, evaluation.registry, evaluation.benchmarks; "
        "print([m for m in ('pydantic', 'numpy', 'jinja2', 'scipy', 'torch') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
