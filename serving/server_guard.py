"""What stands before vLLM's server: every route but ``/health`` wants the token, and a challenge is answered.

vLLM's own check covers paths below /v1 and a few others; /invocations generates without a token (0.32).
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from serving.proof import CHALLENGE, HEALTH, PROOF, proof_of

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Callable[[], Awaitable[Message]], Send], Awaitable[None]]

KEY_VARIABLE = "VLLM_API_KEY"
"""Environment variable with the key, of the child only: an argument could be read by everyone."""


class Guard:
    """ASGI middleware, given to vLLM with ``--middleware``: outermost, so that no other one answers before it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._key = os.environ[KEY_VARIABLE]

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
        headers = {name.lower(): value for name, value in scope.get("headers", ())}
        challenge = headers.get(CHALLENGE.lower().encode("ascii"))
        health = scope["type"] == "http" and scope["path"] == HEALTH and scope["method"] == "GET"
        token = headers.get(b"authorization", b"")
        if health and challenge is not None:
            proof = proof_of(self._key, challenge.decode("latin-1"))
            await _answer(send, 200, b"", (PROOF.lower().encode("ascii"), proof.encode("ascii")))
        elif (
            health
            or scope["type"] not in ("http", "websocket")  # the server's own start and end
            or hmac.compare_digest(token, f"Bearer {self._key}".encode("ascii"))
        ):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _answer(send, 401, b'{"error": {"message": "the server\'s key is wanted"}}')


async def _answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode("ascii"))
    kind = (b"content-type", b"application/json")
    await send({"type": "http.response.start", "status": status, "headers": [length, kind, *headers]})
    await send({"type": "http.response.body", "body": body})
