"""Steps, schemas and token bounds make seeds and ledger keys: an answer that is known is not to be asked for again."""

from __future__ import annotations

from pathlib import Path

from tests.evaluation.asking.requests_made import FILE, every_request


def test_every_protocol_asks_what_it_asked_before(tmp_path: Path) -> None:
    assert list(every_request(tmp_path)) == FILE.read_text(encoding="utf-8").splitlines()
