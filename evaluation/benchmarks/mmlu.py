"""MMLU (Hendrycks et al. 2021, arXiv 2009.03300), format ``mmlu``, in its authors' layout.

A folder or zip file with ``dev``, ``val`` and ``test``, each holding ``<subject>_<split>.csv`` without header: the
question, four options, the key A to D. A single such CSV file works too. The subject comes from the file's name. The
split is ``test`` unless another is asked for (``dev`` has five exemplars per subject).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from evaluation.benchmarks.reading import Located, choice_item, csv_rows, key_index

SPLITS = ("dev", "val", "test")
KEYS = ("A", "B", "C", "D")


class _Sheet(NamedTuple):
    label: str
    subject: str
    split: str
    data: bytes


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of the split, subjects in alphabetical order."""
    wanted = split or "test"
    if wanted not in SPLITS:
        raise ValueError(f"MMLU has no split {wanted!r}; it has {', '.join(SPLITS)}")
    if path.is_file() and path.suffix.lower() == ".csv":
        subject, told = _name_parts(path.stem)
        if split and told and told != split:
            raise ValueError(f"{path} is the split {told!r} by its name, not {split!r}")
        sheets: Iterator[_Sheet] = iter([_Sheet(str(path), subject, told or wanted, _bytes(path))])
    elif path.is_file() and zipfile.is_zipfile(path):
        sheets = _from_zip(path, wanted)
    elif path.is_dir():
        sheets = _from_folder(path, wanted)
    else:
        raise ValueError(f"{path} is no folder, zip or CSV file; name the folder that holds dev/, val/ and test/")
    for sheet in sheets:
        yield from _items(sheet)


def _items(sheet: _Sheet) -> Iterator[Located]:
    for place, record in csv_rows(sheet.data, sheet.label):
        if len(record) != 6:
            raise place.error(
                f"there are {len(record)} columns; there must be 6: question, four options and the key",
                min(len(record), 6) + (len(record) > 6),
            )
        question, *choices, key = record
        answer = key_index(place, key.strip(), KEYS, column=6)
        yield choice_item(
            place,
            benchmark="mmlu",
            split=sheet.split,
            subject=sheet.subject,
            question=question,
            choices=choices,
            answer=answer,
            columns=(1, 2, 3, 4, 5),
        )


def _from_folder(path: Path, split: str) -> Iterator[_Sheet]:
    root = path / "data" if (path / "data").is_dir() else path
    home = root / split if (root / split).is_dir() else root
    files = [file for file in sorted(home.glob("*.csv")) if _name_parts(file.stem)[1] in (split, "")]
    if not files:
        raise ValueError(f"{path} has no file {split}/<subject>_{split}.csv")
    for file in files:
        yield _Sheet(str(file), _name_parts(file.stem)[0], split, _bytes(file))


def _from_zip(path: Path, split: str) -> Iterator[_Sheet]:
    name = ""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(f"_{split}.csv") and "__MACOSX" not in n)
            read = {}
            for name in names:
                read[name] = archive.read(name)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        where = f"{path}/{name}" if name else path
        raise ValueError(f"{where}: the zip file is damaged ({error}); copy it again") from error
    except RuntimeError as error:  # a password, or a compression that Python lacks
        raise ValueError(f"{path}/{name}: can't be unpacked ({error}); unpack it and name the folder") from error
    if not names:
        raise ValueError(f"{path} has no file {split}/<subject>_{split}.csv")
    for name, data in read.items():
        yield _Sheet(f"{path}/{name}", _name_parts(PurePosixPath(name).stem)[0], split, data)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error


def _name_parts(stem: str) -> tuple[str, str]:
    """Subject and split of ``abstract_algebra_test``; the split is "" where the name doesn't end in one."""
    subject, _, split = stem.rpartition("_")
    return (subject, split) if subject and split in SPLITS else (stem, "")
