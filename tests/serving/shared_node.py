"""A node that others use, for tests: another user, an impostor, an endpoint that was laid there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

from serving.endpoint import Endpoint, key_file, write_key
from serving.engines.server_engine import ServerEngine
from serving.ledger import Ledger
from serving.model.fingerprint import fingerprint, versions_for
from serving.model.spec import ModelSpec
from serving.records import Request, Sampling
from serving.role_engines import Cast
from tests.serving.impostor import OTHER_USER

QUESTION = "Which planet is known as the red one?"


class Impostor:
    """Another user's program that listens on a port: uid 65534 where the tests are root's, else our own."""

    all: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, name: str, host: str = "127.0.0.1", port: int = 0, before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, "-m", "tests.serving.impostor", host, str(port), name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.all.append(self.process)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def heard(self) -> str:
        """All that it was told; ends it."""
        time.sleep(0.2)
        self.process.terminate()
        return self.process.communicate(timeout=20)[0]


def as_other_user(code: str) -> str:
    """What another user's Python prints. Skips where there is none to be."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another user")
    drop = f"import os; os.setgroups([]); os.setgid({OTHER_USER}); os.setuid({OTHER_USER})"
    done = subprocess.run(
        [sys.executable, "-c", f"import socket\n{drop}\n{code}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ask(spec: ModelSpec, ledger: Path, question: str = QUESTION) -> str:
    request = Request(prompt=question, sampling=Sampling(max_tokens=7))
    with Cast({"judge": spec}, ledger=Ledger(ledger), mode="fast") as cast:
        return getattr(cast.answer("judge", [request])[0], "text", "")


def ledger_text(folder: Path) -> str:
    return "".join(file.read_text() for file in folder.glob("*.jsonl"))


def lay_endpoint(spec: ModelSpec, url: str, key: str) -> Path:
    """The files of a server that is (or was) at ``url``."""
    file = ServerEngine.file(spec)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_key(key_file(file), key)
    Endpoint(
        url=url,
        fingerprint=fingerprint(spec, mode="fast", device="cpu x2"),
        mode="fast",
        device="cpu x2",
        versions=versions_for(spec),
    ).write(file)
    return file
