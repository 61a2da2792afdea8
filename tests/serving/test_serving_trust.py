"""A served judge on a shared node: nobody takes its place, learns its key or a prompt, or forges an answer."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serving import server_process
from serving.client import Client
from serving.endpoint import Endpoint, key_file, read_endpoint, read_key, write_key
from serving.engines.base import EngineError
from serving.engines.server_engine import ServerEngine
from serving.ledger import Ledger
from serving.model.fingerprint import fingerprint, versions_for
from serving.model.spec import ModelSpec
from serving.proof import Unproven, new_key
from serving.records import Request, Sampling
from serving.role_engines import Cast
from serving.server_process import Server
from tests.serving.ask_server import QUESTION, ask
from tests.serving.impostor import OTHER_USER

pytest.importorskip("uvicorn", reason="uvicorn is not installed (it comes with vllm: 'proctor[gpu]' or 'proctor[cpu]')")


@pytest.fixture
def spec(tiny: Path, tmp_path: Path) -> ModelSpec:
    return ModelSpec(path=str(tiny), engine="server", endpoint=str(tmp_path / "serving" / "m.json"), patience=5.0)


@pytest.fixture
def server(spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Our watch over a child, which is a small server behind the guard instead of vLLM's; not started."""
    made = Server({"m": spec}, tmp_path / "serving", say=lambda text: None)
    monkeypatch.setattr(server_process, "START_LIMIT", 20.0)
    module = [sys.executable, "-m", "tests.serving.small_server", made.fingerprints["m"]]
    monkeypatch.setattr(made, "command", lambda where: [*module, *where])
    yield made
    made.stop()


class Impostor:
    """Another user's program that listens on a port: uid 65534 where the tests are root's, else our own."""

    def __init__(self, name: str, host: str = "127.0.0.1", port: int = 0, before: tuple[str, ...] = ()) -> None:
        command = [*before, sys.executable, "-m", "tests.serving.impostor", host, str(port), name]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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


def test_a_judge_on_a_unix_socket_is_its_owners_alone(server: Server, spec: ModelSpec, tmp_path: Path) -> None:
    server.start()
    there = read_endpoint(ServerEngine.file(spec))
    assert there is not None
    path = Path(there.url.removeprefix("unix:"))
    assert path.is_socket()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert ask(spec, tmp_path / "ledger") == "true answer"
    for parent in (tmp_path, *tmp_path.parents[:3]):  # pytest's own are 0700, which would hide what is tested
        with contextlib.suppress(PermissionError):
            parent.chmod(parent.stat().st_mode | 0o055)
    assert as_other_user(f"print(os.path.isdir({str(tmp_path)!r}))") == "True"
    attempt = "try:\n    {}\n    print('in')\nexcept PermissionError:\n    print('kept out')"
    assert as_other_user(attempt.format(f"socket.socket(socket.AF_UNIX).connect({str(path)!r})")) == "kept out"
    assert as_other_user(attempt.format(f"open({str(key_file(ServerEngine.file(spec)))!r})")) == "kept out"


def test_a_socket_whose_folder_is_open_is_not_used(server: Server, spec: ModelSpec, tmp_path: Path) -> None:
    server.start()
    (tmp_path / "serving").chmod(0o770)
    with pytest.raises(ValueError, match=r"has mode 770 and user \d+: it must be yours alone"):
        ask(spec, tmp_path / "ledger")
    server.folder.chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "serving")
    with pytest.raises(ValueError, match="is a link, no folder, or another user's"):
        Server({"m": spec}, tmp_path / "link", say=lambda text: None).start()


def test_a_long_path_of_a_socket(spec: ModelSpec, server: Server, tmp_path: Path) -> None:
    """A socket's address holds 107 bytes; run folders are longer."""
    server.folder = tmp_path / ("long" * 30) / "serving"
    server.start()
    assert len(server.url) > 180
    assert (
        ask(spec.model_copy(update={"endpoint": str(server.folder / "m.json")}), tmp_path / "ledger") == "true answer"
    )


@pytest.mark.parametrize("child", ["sleeps", "dies", "serves"])
def test_whoever_holds_the_port_is_not_believed(
    child: str, server: Server, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is taken between its choice and the child's bind: 200 on /health is no proof."""
    impostor = Impostor(server.fingerprints["m"])
    server.host = "127.0.0.1"
    monkeypatch.setattr(server_process, "free_port", lambda host: impostor.port)
    code = {"sleeps": "import time; time.sleep(60)", "dies": "raise OSError(98, 'Address already in use')"}.get(child)
    if code:
        monkeypatch.setattr(server, "command", lambda where: [sys.executable, "-c", code])
    with pytest.raises(
        EngineError, match=r"another program answers at .* in the server's place .* it was told nothing"
    ):
        server.start()
    assert not list((tmp_path / "serving").glob("*.key")), "no key is written before the proof"
    assert not ServerEngine.file(spec).exists()
    heard = impostor.heard()
    assert "/health" in heard
    assert server.key not in heard


def test_a_server_that_died_while_its_port_answers_is_not_started_again(
    server: Server, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.host = "127.0.0.1"
    server.start()
    assert ask(spec, tmp_path / "ledger") == "true answer"
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    impostor = Impostor(server.fingerprints["m"], port=port)
    # a stage, in the moment before this is seen
    other = Request(prompt="Another question", sampling=Sampling(max_tokens=7))
    refused = pytest.raises(EngineError, match=r"is not the server of .*challenge is wrong\. Nothing was sent to it")
    with Cast({"judge": spec}, ledger=Ledger(tmp_path / "ledger"), mode="fast") as cast, refused:
        cast.answer("judge", [other])
    with pytest.raises(EngineError, match=r"the server died .*another program answers"):
        server.watch(lambda: False, every=0.01)
    assert not list((tmp_path / "serving").glob("*.key"))
    heard, kept = impostor.heard(), ledger_text(tmp_path / "ledger")
    assert server.key not in heard
    assert "Another" not in heard
    assert "/v1" not in heard
    assert "true answer" in kept
    assert "100.0" not in kept


def test_a_server_that_came_back_has_another_key(server: Server, spec: ModelSpec, tmp_path: Path) -> None:
    server.start()
    first, url = read_key(key_file(ServerEngine.file(spec))), server.url
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    said: list[str] = []
    server._say = said.append
    server.watch(lambda: "the server is back" in said, every=0.01)
    assert read_key(key_file(ServerEngine.file(spec))) != first
    assert not Path(url.removeprefix("unix:")).exists()
    assert ask(spec, tmp_path / "ledger") == "true answer"


def test_an_answer_without_proof_is_no_answer(server: Server) -> None:
    server.start()
    with pytest.raises(Unproven, match="wrong"):
        Client(server.url, new_key()).get("/health")
    impostor = Impostor("x")
    client = Client(f"http://127.0.0.1:{impostor.port}/v1", new_key())
    with pytest.raises(Unproven, match="the challenge is wrong"):
        client.ask("/completions", {"prompt": [1, 2, 3]})
    assert impostor.heard().count("GET /health") == 1
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes the connection and closes it
        client = Client(f"http://127.0.0.1:{mute.getsockname()[1]}/v1", new_key())
        threading.Timer(0.2, lambda: mute.accept()[0].close()).start()
        mute.settimeout(5)
        with pytest.raises(OSError, match=r"closed before the answer|reset"):
            client.get("/health")


# the endpoint file


def test_a_key_is_only_read_from_its_place_and_of_its_form(spec: ModelSpec, tmp_path: Path) -> None:
    """A bundle's endpoint file named a token file, which was sent to its maker's server."""
    impostor = Impostor(fingerprint(spec, mode="fast", device="cpu x2"))
    token = tmp_path / "token"
    token.write_text("hf_" + "a" * 48)
    token.chmod(0o600)
    file = lay_endpoint(spec, f"http://127.0.0.1:{impostor.port}/v1", new_key())
    row = json.loads(file.read_text())
    file.write_text(json.dumps({**row, "key_file": str(token)}))
    with pytest.raises(ValueError, match=r"names the key file .*token; a key is only read from m\.key beside it"):
        ask(spec, tmp_path / "ledger")
    file.write_text(json.dumps({**row, "key_file": str(key_file(file))}))  # of an earlier version: nothing else
    assert read_endpoint(file) is not None
    key_file(file).unlink()
    key_file(file).symlink_to(token)
    with pytest.raises(ValueError, match=r"m\.key can't be read \(it is a link"):
        ask(spec, tmp_path / "ledger")
    key_file(file).unlink()
    os.link(token, key_file(file))
    with pytest.raises(ValueError, match="holds no key of 'proctor serve'"):
        ask(spec, tmp_path / "ledger")
    key_file(file).unlink()
    os.mkfifo(key_file(file), 0o600)
    with pytest.raises(ValueError, match="holds no key of 'proctor serve'"):
        ask(spec, tmp_path / "ledger")
    assert "hf_" not in impostor.heard()
    if os.geteuid() == 0:
        key_file(file).unlink()
        write_key(key_file(file), new_key())
        os.chown(key_file(file), OTHER_USER, OTHER_USER)
        with pytest.raises(ValueError, match=f"belongs to user {OTHER_USER}, not to you"):
            ask(spec, tmp_path / "ledger")


# over the network


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
        command = [*within[here], sys.executable, "-m", "tests.serving.ask_server", spec.model_dump_json()]
        done = subprocess.run([*command, str(tmp_path / which)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

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
    said = asked("forged")
    heard = impostor.heard()
    assert "EngineError" in said
    assert "Nothing was sent to it. Another user's program may have taken the server's place" in said
    assert "GET /health" in heard
    assert key not in heard
    assert "prompt" not in heard
    assert QUESTION in ledger_text(tmp_path / "ledger")
    assert ledger_text(tmp_path / "forged") == ""
