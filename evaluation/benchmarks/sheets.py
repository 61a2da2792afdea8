"""Exams published as one CSV file per subject and split: MMLU's and C-Eval's layout.

A folder or zip file with ``dev``, ``val`` and ``test``, each holding ``<subject>_<split>.csv`` (all of it may stand in
a folder ``data``), or a single such CSV file. The subject comes from the file's name.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from evaluation.benchmarks.reading import read_bytes

SPLITS = ("dev", "val", "test")

# MMLU's largest sheet has 1.6 MB; what claims more than this is no exam.
_LARGEST = 256 * 1024 * 1024


class Sheet(NamedTuple):
    """One CSV file. label: its name in errors; data: its bytes."""

    label: str
    subject: str
    split: str
    data: bytes


def has_sheets(path: Path) -> bool:
    """Whether the path is in this layout: a CSV or zip file, or a folder with CSV files where they belong."""
    if path.is_file():
        return path.suffix.lower() in (".csv", ".zip") or zipfile.is_zipfile(path)
    return any(
        any(home.glob("*.csv")) for root in (path, path / "data") for home in (root, *(root / s for s in SPLITS))
    )


def sheets(path: Path, split: str | None, default: str) -> Iterator[Sheet]:
    """The sheets of a split (``default`` if none is asked for; of a single file, the one that its name tells), by name.

    ValueError if there is none, or if a zip file is damaged or locked.
    """
    wanted = split or default
    if path.is_file() and path.suffix.lower() == ".csv":
        subject, told = name_parts(path.stem)
        if split and told and told != split:
            raise ValueError(f"{path} is the split {told!r} by its name, not {split!r}")
        yield Sheet(str(path), subject, told or wanted, read_bytes(path))
    elif path.is_file():
        yield from _from_zip(path, wanted)
    else:
        yield from _from_folder(path, wanted)


def name_parts(stem: str) -> tuple[str, str]:
    """Subject and split of ``abstract_algebra_test``; the split is "" where the name doesn't end in one."""
    subject, _, split = stem.rpartition("_")
    return (subject, split) if subject and split in SPLITS else (stem, "")


def _from_folder(path: Path, split: str) -> Iterator[Sheet]:
    root = path / "data" if (path / "data").is_dir() else path
    home = root / split if (root / split).is_dir() else root
    files = [file for file in sorted(home.glob("*.csv")) if name_parts(file.stem)[1] in (split, "")]
    if not files:
        raise ValueError(f"{path} has no file {split}/<subject>_{split}.csv")
    for file in files:
        yield Sheet(str(file), name_parts(file.stem)[0], split, read_bytes(file))


def _from_zip(path: Path, split: str) -> Iterator[Sheet]:
    name = ""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(f"_{split}.csv") and "__MACOSX" not in n)
            read = {}
            for name in names:
                size = archive.getinfo(name).file_size
                if size > _LARGEST:
                    raise ValueError(f"{path}/{name} unpacks to {size} bytes; that is no exam, look what it holds")
                read[name] = archive.read(name)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        where = f"{path}/{name}" if name else path
        raise ValueError(f"{where}: the zip file is damaged ({error}); copy it again") from error
    except RuntimeError as error:  # a password, or a compression that Python lacks
        raise ValueError(f"{path}/{name}: can't be unpacked ({error}); unpack it and name the folder") from error
    if not names:
        raise ValueError(f"{path} has no file {split}/<subject>_{split}.csv")
    for name, data in read.items():
        yield Sheet(f"{path}/{name}", name_parts(PurePosixPath(name).stem)[0], split, data)
