"""Where a model served by ``proctor serve`` is found, and whether it may be talked to. Standard library only.

``<run>/serving/<model>.json`` names the address and the fingerprint of what is served; beside it lies ``<model>.key``,
which only its owner may read. A client believes none of it: the address must be a Unix socket in a folder of one's own,
loopback, private or allowed by name, the fingerprint must be the one it computes from the model's own files, the server
must prove that it knows the key (serving/proof.py), and call what it serves by that fingerprint.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import os
import socket
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serving.errors import EngineError
from serving.files import NEW, write_json, write_text
from serving.model.fingerprint import ModelError
from serving.model.spec import ModelSpec
from serving.proof import KEY_FORM

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

    url: of the OpenAI-compatible API, ending in /v1, or ``unix:`` and the path of a socket
    node: name of the machine that it runs on
    fingerprint: of model, engine, mode and device together; also the name under which the server serves it
    mode, device, versions, lora: what else goes into the fingerprint, as it was on the server's machine
    ended: the server has gone for good (its answers in ledgers stay valid)
    """

    url: str
    fingerprint: str
    mode: str
    device: str
    versions: dict[str, str] = field(default_factory=dict)
    lora: tuple[int, int] | None = None
    node: str = ""
    ended: bool = False

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))


def read_endpoint(path: Path) -> Endpoint | None:
    """The endpoint file, or None where it does not exist (yet). ModelError if it is damaged."""
    try:
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        lora = row.pop("lora", None)
        named = row.pop("key_file", None)  # of a server of an earlier version, or somebody's hope
        if named is not None and Path(named).name != key_file(path).name:
            raise ModelError(
                f"{path} names the key file {named}; a key is only read from {key_file(path).name} beside it, which "
                "'proctor serve' writes: don't use this file, and ask whoever gave it to you"
            )
        return Endpoint(**row, lora=None if lora is None else (int(lora[0]), int(lora[1])))
    except FileNotFoundError:
        return None
    except ModelError:
        raise
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ModelError(f"{path} is damaged ({error}); start 'proctor serve' again, which writes it anew") from error


def failure_file(endpoint: Path) -> Path:
    """Beside an endpoint file: why its server could not start, or gave up. It is gone when a new one starts."""
    return endpoint.with_suffix(".failed")


def check_not_failed(spec: ModelSpec, path: Path) -> None:
    """EngineError with its last words if the server could not start: nobody should wait for it."""
    file = failure_file(path)
    if file.is_file():
        said = file.read_text(encoding="utf-8", errors="replace").strip()
        raise EngineError(f"the server of {spec.path} has failed: {said}; mend it, and start 'proctor serve' again")


def write_failure(endpoint: Path, why: str) -> None:
    """Tells those who wait for a server that it won't come."""
    write_text(failure_file(endpoint), why)


def key_file(endpoint: Path) -> Path:
    """Where the key of an endpoint file is: beside it, nowhere else."""
    return endpoint.with_suffix(".key")


def read_key(path: Path) -> str:
    """The key. ModelError if the file is missing, a link, another user's, readable by others, or holds something else
    than a key that ``proctor serve`` made: no other secret may leave by this way."""
    again = "start 'proctor serve' again"
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            seen = os.fstat(stream.fileno())
            found = stream.read(1000) if stat.S_ISREG(seen.st_mode) else b""
    except OSError as error:
        link = error.errno == errno.ELOOP
        why = "it is a link, and a key is a file" if link else error.strerror
        raise ModelError(f"key file {path} can't be read ({why}); {again}") from error
    if seen.st_uid != os.geteuid():
        raise ModelError(f"key file {path} belongs to user {seen.st_uid}, not to you ({os.geteuid()}); {again}")
    if seen.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ModelError(f"key file {path} has mode {stat.S_IMODE(seen.st_mode):o}: others may read it; chmod 600 it")
    key = found.decode("ascii", "replace").strip()
    if not KEY_FORM.fullmatch(key):
        raise ModelError(
            f"key file {path} holds no key of 'proctor serve' (proctor- and 43 characters); nothing was sent; {again}"
        )
    return key


def write_key(path: Path, key: str) -> None:
    """A new key file that only its owner may read, from its first moment on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, NEW, 0o600), "w", encoding="ascii") as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(key + "\n")


def own_folder(path: Path) -> None:
    """Makes the folder of endpoint files and keys, for this user alone (mode 0700). ModelError if it is another's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    seen = path.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise ModelError(f"{path} is a link, no folder, or another user's; remove it: a server's key is to lie there")
    path.chmod(0o700)


def safe_address(url: str) -> str:
    """The URL with its host as a checked number, so that no second look-up can lead elsewhere; a socket's as it is.

    ModelError if any address of the host is neither loopback nor private, unless $PROCTOR_ALLOWED_HOSTS names the host.
    """
    if url.startswith("unix:/"):  # whose folder is looked at when it is connected
        return url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ModelError(
            f"endpoint {url!r} is no address of a server; it looks like http://127.0.0.1:8000/v1 or unix:/..."
        )
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


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def free_port(host: str) -> int:
    """A port of the host that nobody listens on now. ValueError if it is no address of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ValueError(f"host {host} is no address of this machine ({error.strerror})") from error
        return int(probe.getsockname()[1])
