"""Where a model served by ``proctor serve`` is found, and whether it may be talked to. Standard library only.

``<run>/serving/<model>.json`` names the address, the fingerprint of what is served, and a key file that only its owner
may read. A client believes none of it: the address must be loopback, private or allowed by name, the fingerprint must
be the one it computes from the model's own files, and the server must call what it serves by that fingerprint.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving.model.fingerprint import ModelError

ALLOWED = "PROCTOR_ALLOWED_HOSTS"
"""Environment variable: hosts outside loopback and private ranges that may be asked, separated by commas."""


_LOCAL = [
    ipaddress.ip_network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A served model.

    url: of the OpenAI-compatible API, ending in /v1
    fingerprint: of model, engine, mode and device together; also the name under which the server serves it
    mode, device, versions, lora: what else goes into the fingerprint, as it was on the server's machine
    ended: the server has gone for good (its answers in ledgers stay valid)
    """

    url: str
    fingerprint: str
    key_file: str
    mode: str
    device: str
    versions: dict[str, str] = field(default_factory=dict)
    lora: tuple[int, int] | None = None
    ended: bool = False

    def write(self, path: Path) -> None:
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        partial.replace(path)


def read_endpoint(path: Path) -> Endpoint | None:
    """The endpoint file, or None where it does not exist (yet). ModelError if it is damaged."""
    try:
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        lora = row.pop("lora", None)
        return Endpoint(**row, lora=None if lora is None else (int(lora[0]), int(lora[1])))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ModelError(f"{path} is damaged ({error}); start 'proctor serve' again, which writes it anew") from error


def failure_file(endpoint: Path) -> Path:
    """Beside an endpoint file: why its server could not start, or gave up. It is gone when a new one starts."""
    return endpoint.with_suffix(".failed")


def write_failure(endpoint: Path, why: str) -> None:
    """Tells those who wait for a server that it won't come."""
    endpoint.parent.mkdir(parents=True, exist_ok=True)
    failure_file(endpoint).write_text(why, encoding="utf-8")


def read_key(path: Path) -> str:
    """The key. ModelError if the file is missing, or if others than its owner may read it."""
    try:
        mode = path.stat().st_mode
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"key file {path} can't be read ({error}); start 'proctor serve' again") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ModelError(f"key file {path} has mode {stat.S_IMODE(mode):o}: others may read it; chmod 600 it")
    if not key:
        raise ModelError(f"key file {path} is empty; start 'proctor serve' again")
    return key


def write_key(path: Path, key: str) -> None:
    """A new key file that only its owner may read, from its first moment on."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(key + "\n")


def safe_address(url: str) -> str:
    """The URL with its host as a checked number, so that no second look-up can lead elsewhere.

    ModelError if any address of the host is neither loopback nor private, unless $PROCTOR_ALLOWED_HOSTS names the host.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ModelError(f"endpoint {url!r} is no address of a server; it looks like http://127.0.0.1:8000/v1")
    host, allowed = parts.hostname, {name.strip() for name in os.environ.get(ALLOWED, "").split(",")}
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError) as error:
        raise ModelError(f"endpoint {url!r}: the host {host!r} is unknown here ({error})") from error
    addresses = [ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in found]
    bad = [address for address in addresses if not local(address)]
    if bad and host not in allowed:
        raise ModelError(
            f"endpoint {url!r}: {host} is {bad[0]}, neither loopback nor private. Proctor sends nothing there; if it "
            f"is your own machine, name it in {ALLOWED}"
        )
    if parts.scheme == "https":  # the certificate is for the name
        return url
    address = addresses[0]
    shown = f"[{address}]" if address.version == 6 else str(address)
    return parts._replace(netloc=f"{shown}:{port}").geturl()


def local(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Loopback, or of a private or link-local range (RFC 1918, 4193, 3927, 4291)."""
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in _LOCAL if network.version == address.version)
