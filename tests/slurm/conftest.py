"""A SLURM cluster for the tests of a module, and what they submit to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, missing, running


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """SLURM on localhost; skips with the reason where it can't start."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with running(Path(tmp_path_factory.mktemp("slurm"))) as started:
        yield started
