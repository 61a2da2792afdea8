"""A served judge on a shared node: nobody takes its place, learns its key or a prompt, or forges an answer."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import server_process
from serving.client import Client
from serving.endpoint import key_file, read_endpoint, read_key, write_key
from serving.engines.server_engine import ServerEngine
from serving.errors import EngineError
from serving.model.fingerprint import fingerprint
from serving.model.spec import ModelSpec
from serving.proof import Unproven, new_key
from serving.server_process import Server
from tests.serving.impostor import OTHER_USER
from tests.serving.shared_node import Impostor, as_other_user, ask, lay_endpoint, ledger_text

pytestmark = pytest.mark.usefixtures("tests_importable")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (it comes with vllm: 'proctor[gpu]' or 'proctor[cpu]')")


@pytest.fixture
def spec(tiny: Path, tmp_path: Path) -> ModelSpec:
    return ModelSpec(path=str(tiny), engine="server", endpoint=str(tmp_path / "serving" / "m.json"), patience=60.0)


@pytest.fixture
def server(spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Our watch over a child, which is a small server behind the guard instead of vLLM's; not started."""
    made = Server({"m": spec}, tmp_path / "serving", say=lambda text: None)
    monkeypatch.setattr(server_process, "START_LIMIT", 90.0)
    module = [sys.executable, "-m", "tests.serving.small_server", made.fingerprints["m"]]
    monkeypatch.setattr(made, "command", lambda where: [*module, *where])
    yield made
    made.stop()


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
    with pytest.raises(EngineError, match=r"is not the server of .*challenge is wrong\. Nothing was sent to it"):
        ask(spec, tmp_path / "ledger", "Another question")
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


def test_what_a_killed_server_left_is_removed_and_nothing_else(server: Server, spec: ModelSpec, tmp_path: Path) -> None:
    """An endpoint file may come from anywhere: the socket that it names is looked for in our folder alone."""
    precious = tmp_path / "server-00000000.sock"
    precious.touch()
    file = lay_endpoint(spec, f"unix:{tmp_path}/serving/../server-00000000.sock", new_key())
    left = file.parent / "server-00000001.sock"
    left.touch()
    server.start()
    assert precious.exists()
    assert left.exists()
    lay_endpoint(spec, f"unix:{left}", new_key())
    file.write_text(file.read_text().replace('"ended": false', '"ended": true'))
    server.stop()
    server.start()
    assert not left.exists()
    file.write_text("{")
    server.stop()


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
