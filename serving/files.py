"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

SHARE = "PROCTOR_SHARE"
"""Environment variable: others may enter folders of results."""
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of a file that was not there: no link of somebody else's is written through."""


def write_text(path: Path, text: str) -> None:
    """Lone surrogates in model text are kept as escapes; line ends as they are."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes beside ``path``, syncs and renames."""
    with whole_file(path) as stream:
        stream.write(data)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose bytes become ``path`` when it closes without an error: synced, and renamed."""
    with beside(path) as partial, os.fdopen(os.open(partial, NEW, 0o666), "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder that becomes ``path`` when it closes without an error."""
    with beside(path) as partial:
        partial.mkdir()
        yield partial


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A name beside ``path`` for what becomes ``path`` when it closes without an error, and is removed otherwise.

    It is random: nobody who may write to the folder can lay a link there through which another file would be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}")
    with naming(path):
        try:
            yield partial
            partial.replace(path)
        finally:
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)


def output_folder(path: Path, *, share: bool | None = None) -> None:
    """Makes a folder of results, which only its user can enter (mode 0700): what models were asked and answered is
    nobody else's on a shared machine, however the files in it are made. One that exists keeps its mode.

    share: open it to others, as far as the umask does (None: where $PROCTOR_SHARE is set, and not 0)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if os.environ.get(SHARE, "0") not in ("", "0") if share is None else share:
        umask = os.umask(0o077)
        os.umask(umask)
        with contextlib.suppress(PermissionError):  # another user's, who decides
            path.chmod(0o777 & ~umask)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Gives an OSError without a file name this one: "No space left on device" comes from a write, which knows none.

    So does safetensors' own error, which then becomes an OSError."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
    except Exception as error:
        if type(error).__name__ == "SafetensorError" and "(os error 28)" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise


def write_json(path: Path, value: Any) -> None:
    """Indented JSON; NaN is refused, for no other language reads it."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One row per line, keys in their own order."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of ours. ValueError names the file and the line of a damaged one."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line:
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number} is damaged ({error}); if Proctor wrote it, remove it and run again"
                ) from None
    return rows


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of ours; {} if the file is missing. ValueError names a damaged one."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); remove it and run again") from None
    return value if isinstance(value, dict) else {}


T = TypeVar("T")


def readable(load: Callable[[], T], name: object) -> T:
    """What ``load`` reads; ValueError that names the file where the system can't read it."""
    try:
        return load()
    except OSError as error:
        raise ValueError(f"{error.filename or name}: can't be read: {error.strerror or error}") from error
