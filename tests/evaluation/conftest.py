"""What the evaluation tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluation.items import Item, make_item


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
