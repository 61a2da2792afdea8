"""HTTP to a served model: over TCP or a Unix socket, each connection proved before anything is asked over it.

The standard library's client, for the challenge comes first on the very connection that a request then takes. It
follows no redirect and knows no proxy.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import ssl
import stat
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from serving.model.folder import ModelError
from serving.proof import PATIENCE_S, demand_proof

UNIX = "unix:"
ANSWER_LIMIT_S = 3600.0
"""Seconds that an answer may take."""


class Reply(NamedTuple):
    status: int
    body: bytes


class Refused(Exception):
    """The server's answer has another status than 200; the text is what the server says of it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(_message(reply.body))
        self.status = reply.status


class Client:
    """Connections to one server, kept open; may be used by many threads at once.

    address: ``http://HOST:PORT/...`` (checked before: ``endpoint.safe_address``) or ``unix:/FOLDER/SOCKET``
    """

    def __init__(self, address: str, key: str) -> None:
        self._address, self._key = address, key
        self._base = "/v1" if address.startswith(UNIX) else urlsplit(address).path.rstrip("/")
        self._idle: list[_Connection] = []

    def get(self, path: str) -> Reply:
        """A page, by its whole path. Unproven, OSError or HTTPException if there is no answer."""
        return self._ask("GET", path, None)

    def ask(self, path: str, value: Any = None) -> dict[str, Any]:
        """JSON for JSON (or for nothing), by a path below the API's. Refused if the answer's status isn't 200; errors
        as of ``get``."""
        body = None if value is None else json.dumps(value).encode("ascii")
        reply = self._ask("GET" if body is None else "POST", self._base + path, body)
        if reply.status != 200:
            raise Refused(reply)
        answer = json.loads(reply.body)
        assert isinstance(answer, dict)
        return answer

    def close(self) -> None:
        """Closes the connections that nobody uses now."""
        while self._idle:
            self._idle.pop().close()

    def _ask(self, method: str, path: str, body: bytes | None) -> Reply:
        connection = self._connection()
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.read())
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:  # else the server wants a new one for the next
            self._idle.append(connection)
        return reply

    def _connection(self) -> _Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if not connection.ended():
                return connection
            connection.close()
        made = _Connection(self._address, self._key)
        try:
            made.connect()
        except BaseException:
            made.close()
            raise
        return made


class _Connection(http.client.HTTPConnection):
    """A connection that is proved as soon as it is made."""

    auto_open = 0  # never made anew without the proof's being seen to: see Client._connection

    def __init__(self, address: str, key: str) -> None:
        self._key = key
        self._socket = Path(address.removeprefix(UNIX)) if address.startswith(UNIX) else None
        parts = urlsplit("http://localhost" if self._socket else address)
        self._secure = parts.scheme == "https"
        super().__init__(parts.hostname or "", parts.port or (443 if self._secure else 80), timeout=PATIENCE_S)

    def connect(self) -> None:
        if self._socket is not None:
            self.sock = connect_unix(self._socket)
        else:
            super().connect()
            if self._secure:
                self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
        demand_proof(self.sock, self._key)
        self.sock.settimeout(ANSWER_LIMIT_S)

    def ended(self) -> bool:
        """Whether the server has closed it meanwhile (or said something unasked)."""
        if self.sock is None:
            return True
        look = select.poll()
        look.register(self.sock, select.POLLIN)
        return bool(look.poll(0))


def _message(body: bytes) -> str:
    """What a refusal says: vLLM's message, or its first 300 characters."""
    try:
        found = json.loads(body)["error"]
        return str(found["message"] if isinstance(found, dict) else found)[:2000]
    except (ValueError, LookupError, TypeError):
        return body[:300].decode("utf-8", "replace")


def connect_unix(path: Path) -> socket.socket:
    """A connection to a socket whose folder nobody but this user can enter. ModelError if others can; OSError if nobody
    listens.

    The folder is opened once, looked at and then used, so that it can't be changed in between; and since the name is
    given relative to it, it may be longer than the 107 bytes of a socket's address.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        seen = os.fstat(folder)
        if seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            raise ModelError(
                f"folder {path.parent} of the server's socket has mode {stat.S_IMODE(seen.st_mode):o} and user "
                f"{seen.st_uid}: it must be yours alone (user {os.geteuid()}, mode 700); start 'proctor serve' again"
            )
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(PATIENCE_S)
            made.connect(f"/proc/self/fd/{folder}/{path.name}")
        except BaseException:
            made.close()
            raise
        return made
    finally:
        os.close(folder)
