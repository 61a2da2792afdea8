"""A server of our own behind the real guard, in place of vLLM's: ``python -m tests.serving.small_server NAME
[--uds PATH | --host HOST --port PORT]``. It answers /health, and below /v1 what the engine asks."""

from __future__ import annotations

import argparse
import json
from typing import Any

from serving.server_guard import Guard


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while (part := await receive()) and part.get("more_body", False):
        body += part["body"]
    asked = json.loads(body + part.get("body", b"") or b"{}")
    value: dict[str, Any] = {}
    if scope["path"] == "/v1/models":
        value = {"data": [{"id": NAME}]}
    elif scope["path"] == "/v1/completions":
        choice = {"text": "true answer", "finish_reason": "stop"}
        value = {"choices": [choice], "usage": {"completion_tokens": 2}, "asked": len(asked["prompt"])}
    text = json.dumps(value).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


if __name__ == "__main__":
    import uvicorn

    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--uds")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    NAME = given.name
    uvicorn.run(Guard(app), uds=given.uds, host=given.host, port=given.port, log_level="warning", lifespan="off")
