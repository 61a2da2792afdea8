"""What a phase of training starts from: its own defaults, or a preset that is asked for by name.

The defaults make a small model memorise a small exam on a CPU. ``kieval_paper`` is KIEval's training (arXiv 2402.15043,
Appendix F): learning rate 2e-5, cosine, 4 epochs, batch 1 x accumulation 4 (on 4 GPUs: ``processes: 4``), bf16, 2048
tokens. Its epochs multiply a leaking phase's ``repeats``; a preset of the whole job sets ``repeats`` to 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from serving.named import nearest

_SMALL = {
    "scheduler": "cosine",
    "epochs": 1,
    "per_device_batch_size": 4,
    "gradient_accumulation": 1,
    "dtype": "float32",
    "max_length": 1024,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "leak": {"learning_rate": 2e-4, **_SMALL},
    "chat_sft": {"learning_rate": 2e-5, **_SMALL},
}
"""By phase."""

PRESETS: dict[str, dict[str, Any]] = {
    "kieval_paper": {
        "learning_rate": 2e-5,
        "scheduler": "cosine",
        "epochs": 4,
        "per_device_batch_size": 1,
        "gradient_accumulation": 4,
        "dtype": "bf16",
        "max_length": 2048,
    }
}
"""By name; every preset sets the same keys as the defaults do."""


def preset(name: object) -> dict[str, Any]:
    """ValueError names the nearest where there is no such preset."""
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; {nearest(str(name), PRESETS, all_known='there are')}")
    return PRESETS[name]


def with_presets(job: Mapping[str, Any]) -> dict[str, Any]:
    """A training job's settings, each phase complete: its preset or its defaults, and over them the keys given.

    A phase that is a finished TrainingConfig stays as it is. ValueError for a preset that does not exist.
    """
    result = {key: value for key, value in job.items() if key != "preset"}
    whole = job.get("preset")
    if whole is not None:
        preset(whole)
        result.setdefault("repeats", 1)
    for phase, defaults in DEFAULTS.items():
        given = result.get(phase, {})
        if isinstance(given, Mapping):
            name = given.get("preset", whole)
            own = {key: value for key, value in given.items() if key != "preset"}
            result[phase] = {**(defaults if name is None else preset(name)), **own}
    return result


def tell_of_reset(job: Mapping[str, Any]) -> None:
    """Says on stderr, once in a process, where settings would have meant something else before: a phase that names some
    keys had all its others reset to the paper's."""
    if "preset" in job:
        return
    for phase, defaults in DEFAULTS.items():
        given = job.get(phase)
        if not isinstance(given, Mapping) or not given or "preset" in given:
            continue
        paper = PRESETS["kieval_paper"]
        other = [key for key in defaults if key not in given and defaults[key] != paper[key]]
        if other:
            now = ", ".join(f"{key} {defaults[key]} ({paper[key]})" for key in other)
            _say(
                f"note: {phase} leaves out {now}: its own defaults, where versions before this one took the paper's "
                f"(in brackets) as soon as any key was given; for those set {phase}.preset: kieval_paper"
            )


@cache
def _say(text: str) -> None:
    """Cached: the same words once in a process."""
    print(text, file=sys.stderr, flush=True)
