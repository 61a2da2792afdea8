"""docs/detectors.md says of every detector what its class says, and its worked example works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from detection import detectors
from detection.method import Context, Text

DOCS = (Path(__file__).parents[2] / "docs" / "detectors.md").read_text(encoding="utf-8")


def rows() -> dict[str, list[str]]:
    table = [line.split("|")[1:-1] for line in DOCS.splitlines() if re.match(r"\| `\w+` (\|[^|]*){4}\|$", line)]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells] for cells in table}


def test_every_detector_has_its_row():
    found = rows()
    for name in detectors.names():
        cls = detectors.detector_class(name)
        assert found[name][4] == cls.paper
        assert sum(map(int, re.findall(r"\d+", found[name][3]))) == cls.passes
        for need in ("reference_model", "corpus", "non_members", "members", "full_vocabulary"):
            words = found[name][2].replace("-", "_").replace(" model", "_model").replace("full v", "full_v").split(", ")
            assert (need in words) == (need in cls.needs), (name, need)


def test_options_have_their_defaults():
    pairs = re.findall(r"^\| (`\w+\.\w+`(?:, `\w+\.\w+`)*) \| ([^|]+) \|", DOCS, flags=re.MULTILINE)
    stated = {}
    for names, values in pairs:
        keys = re.findall(r"`([\w.]+)`", names)
        numbers = [float(value) for value in values.split(",")]
        stated.update(zip(keys, numbers * len(keys) if len(numbers) == 1 else numbers, strict=False))
    for name in ("neighbour", "recall", "con_recall", "dc_pdd", "pac"):
        fields = detectors.detector_class(name).Options.model_fields
        assert {key: field.default for key, field in fields.items()} == {
            key.partition(".")[2]: value for key, value in stated.items() if key.startswith(f"{name}.")
        }


def test_the_worked_example(tokens, drive):
    source, test = re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL)
    assert len(source.splitlines()) < 100
    space: dict[str, Any] = {"__name__": "window", "Context": Context, "Text": Text}
    exec(compile(source, "docs/detectors.md", "exec"), space)
    exec(compile(test, "docs/detectors.md", "exec"), space)
    space["test_the_surest_two_tokens"](tokens, drive)
    for logprobs, score in (([-3.0, -5.0], -4.0), ([-9.0] + [-1.0] * 50 + [-9.0], -1.0)):
        scores, _ = drive(space["Window"](Context()).examine(Text(id="a", text="a")), lambda _, lp=logprobs: tokens(lp))
        assert scores == {"window": score}
