"""How a server shows that it is ours before it is told anything: it proves that it knows the key.

Whoever listens at the address may be another user's program, for a port can be taken while a server starts, or after
one has died. So every new connection begins with a challenge, a random number, on the one route that wants no token;
the answer is its HMAC-SHA256 under the key (RFC 2104). Neither the key nor a prompt is sent before it was right.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import io
import re
import secrets
import socket
import time

HEALTH = "/health"
CHALLENGE, PROOF = "X-Proctor-Challenge", "X-Proctor-Proof"
KEY_FORM = re.compile(r"proctor-[A-Za-z0-9_-]{43}")
"""What a key looks like, so that no other secret is ever taken for one."""
PATIENCE_S = 30.0
"""Seconds for an answer to a challenge: a server's machine may be busy."""
LONGEST_ANSWER = 16_384


class Unproven(Exception):
    """What answers at the address does not know the key."""


def new_key() -> str:
    """A key of 256 random bits."""
    return "proctor-" + secrets.token_urlsafe(32)


def proof_of(key: str, challenge: str) -> str:
    """The answer to a challenge, in hexadecimal digits."""
    return hmac.new(key.encode("ascii"), b"proctor-server\0" + challenge.encode("latin-1"), hashlib.sha256).hexdigest()


def demand_proof(connection: socket.socket, key: str) -> None:
    """Challenges whoever is at the other end of a new connection; afterwards requests may be sent over it.

    Unproven if the answer is wrong, none or too long; OSError if it comes too late, or the connection breaks.
    """
    challenge = secrets.token_hex(32)
    connection.settimeout(PATIENCE_S)
    connection.sendall(f"GET {HEALTH} HTTP/1.1\r\nHost: proctor\r\n{CHALLENGE}: {challenge}\r\n\r\n".encode("ascii"))
    until, data = time.monotonic() + PATIENCE_S, b""
    while b"\r\n\r\n" not in data:  # our server's answer to a challenge has no body
        if len(data) > LONGEST_ANSWER:
            raise Unproven("its answer to the challenge is too long")
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer to the challenge")
        connection.settimeout(left)
        more = connection.recv(4096)
        if not more:
            raise ConnectionResetError("closed before the answer to the challenge" if not data else "answer cut short")
        data += more
    first, _, rest = data.partition(b"\r\n")
    try:
        found = http.client.parse_headers(io.BytesIO(rest)).get(PROOF, "")
    except http.client.HTTPException as error:
        raise Unproven("its answer to the challenge is no HTTP") from error
    if not first.startswith(b"HTTP/1.1 200"):
        raise Unproven("it does not answer the challenge")
    if not hmac.compare_digest(found.encode("latin-1", "replace"), proof_of(key, challenge).encode("ascii")):
        raise Unproven("its answer to the challenge is " + ("wrong" if found else "missing"))
