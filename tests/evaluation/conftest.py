"""What the evaluation tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from evaluation.items import Item, make_item

# The same cases in every run, and no time limit per case: CI machines are slow at times.
settings.register_profile("proctor", deadline=None, derandomize=True, database=None)
settings.load_profile("proctor")


@pytest.fixture
def item() -> Item:
    return make_item(
        benchmark="t",
        split="test",
        subject="physics",
        question="What bends light?",
        choices=["A mirror", "A lens", "A wall", "A drum"],
        answer="B",
        reason="SECRET-REASON",
    )


@pytest.fixture
def public_data() -> Path:
    """Real benchmarks, where the machine has them."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("PROCTOR_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no public data at {folder}; set PROCTOR_DATA")
    return folder
