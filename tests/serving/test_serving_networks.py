"""A served judge on another machine (a network namespace) proves itself before it is told anything."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from serving.errors import EngineError
from serving.model.fingerprint import fingerprint
from serving.model.spec import ModelSpec
from serving.proof import new_key
from tests.serving.shared_node import QUESTION, Impostor, ask, lay_endpoint, ledger_text

pytestmark = pytest.mark.usefixtures("tests_importable")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (it comes with vllm: 'proctor[gpu]' or 'proctor[cpu]')")


@pytest.fixture
def spec(tiny: Path, tmp_path: Path) -> ModelSpec:
    return ModelSpec(path=str(tiny), engine="server", endpoint=str(tmp_path / "serving" / "m.json"), patience=60.0)


@pytest.fixture
def network() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them: 10.203.7.1 and 10.203.7.2."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2's ip, for network namespaces")
    names = (f"proctor-a{os.getpid()}", f"proctor-b{os.getpid()}")
    cables = (f"pa{os.getpid()}", f"pb{os.getpid()}")
    made = subprocess.run(["ip", "netns", "add", names[0]], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"network namespaces can't be made here: {made.stderr.strip()}")
    try:
        run("ip", "netns", "add", names[1])
        run("ip", "link", "add", cables[0], "type", "veth", "peer", "name", cables[1])
        for number, (name, cable) in enumerate(zip(names, cables, strict=True), 1):
            run("ip", "link", "set", cable, "netns", name)
            run("ip", "-n", name, "addr", "add", f"10.203.7.{number}/24", "dev", cable)
            run("ip", "-n", name, "link", "set", cable, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def in_namespace(name: str, work: Callable[[], str]) -> str:
    """What ``work`` returns in a thread that lives in a network namespace, as the threads that it starts do."""

    def move() -> str:
        with Path("/run/netns", name).open() as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000):  # CLONE_NEWNET
                raise OSError(ctypes.get_errno(), "setns")
        return work()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(move).result()


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)


def test_a_judge_on_another_machine_proves_itself_first(
    network: tuple[str, str], spec: ModelSpec, tmp_path: Path
) -> None:
    here, there = network
    within = {name: ("ip", "netns", "exec", name) for name in network}
    name, key = fingerprint(spec, mode="fast", device="cpu x2"), new_key()

    def asked(which: str) -> str:
        return in_namespace(here, lambda: ask(spec, tmp_path / which))

    small = [*within[there], sys.executable, "-m", "tests.serving.small_server", name, "--host", "10.203.7.2"]
    environment: dict[str, Any] = {**os.environ, "VLLM_API_KEY": key}
    server = subprocess.Popen([*small, "--port", "4711"], env=environment)
    try:
        lay_endpoint(spec, "http://10.203.7.2:4711/v1", key)
        assert asked("ledger") == "true answer"
    finally:
        server.kill()
        server.wait()
    impostor = Impostor(name, "10.203.7.2", 4711, within[there])
    told = "Nothing was sent to it. Another user's program may have taken the server's place"
    with pytest.raises(EngineError, match=re.escape(told)):
        asked("forged")
    heard = impostor.heard()
    assert "GET /health" in heard
    assert key not in heard
    assert "prompt" not in heard
    assert QUESTION in ledger_text(tmp_path / "ledger")
    assert ledger_text(tmp_path / "forged") == ""
