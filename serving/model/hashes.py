"""SHA-256 of files, cached in the user's cache folder: a 70B model is 140 GB to read.

The key of the cache is path, size, inode, and both times. The time of modification can be set (tar files, wheels and
``cp -p`` do), the time of the inode's last change (ctime) only by the system's clock: other content under the former
size and date has another ctime, or another inode.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from serving.files import write_text
from serving.model.embedded import cache_folder

SETTLED_S = 0.1
"""A file that changed later than so many seconds ago is not cached: a second change within one tick of the file
system's clock leaves the same ctime."""


def file_hash(path: Path) -> str:
    """SHA-256 of a file, from the cache where the file is the one that was read."""
    real = path.resolve()
    value = _cached(real, real.stat())
    return _read(real) if value is None else value


def rehash(paths: Iterable[Path]) -> list[Path]:
    """Reads the files again, whatever the cache says, and corrects it. Returns those whose cached hash was wrong."""
    wrong = []
    for path in paths:
        real = path.resolve()
        former = _cached(real, real.stat())
        value = _read(real)
        if former not in (None, value):
            wrong.append(path)
    return wrong


def _read(real: Path) -> str:
    before, now = real.stat(), time.time()
    with real.open("rb") as stream:
        value = hashlib.file_digest(stream, "sha256").hexdigest()
    place = _place(real, before)
    if _place(real, real.stat()) == place and before.st_ctime < now - SETTLED_S:
        with contextlib.suppress(OSError):  # a cache folder that can't be written costs time, nothing else
            write_text(place, value)
    return value


def _cached(real: Path, stat: os.stat_result) -> str | None:
    place = _place(real, stat)
    value = place.read_text(encoding="ascii", errors="replace").strip() if place.is_file() else ""
    return value if len(value) == 64 else None


def _place(real: Path, stat: os.stat_result) -> Path:
    what = (real, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
    key = hashlib.sha256("\0".join(map(str, what)).encode("utf-8", "surrogateescape")).hexdigest()
    return cache_folder() / "hashes" / key
