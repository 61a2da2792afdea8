"""Rows of Parquet and Arrow files, whose few bytes may stand for many: both rows and texts have a limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import POINTER, Place, Row, read_bytes

MOST_ROWS = 2_000_000
LARGEST = 512 * 1024**2
"""Bytes of text in all rows of a file; what claims more is no exam."""
TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def arrow_rows(file: Path) -> Iterator[Row]:
    """The rows of a Parquet or Arrow file. ValueError names the file, and the row, of what can't be read or is too
    large."""
    from pyarrow.lib import ArrowException

    if not file.is_file():
        raise ValueError(f"{file} is no plain file; name a file")
    number = 0
    batches = _batches(file)
    while True:
        try:
            batch = next(batches, None)
        except (ArrowException, OSError, UnicodeDecodeError) as error:
            kind = "Parquet" if file.suffix.lower() == ".parquet" else "Arrow"
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            after = f" after row {number}" if number else ""
            raise ValueError(f"{file}: the {kind} file is damaged{after} ({reason}); copy it again") from error
        if batch is None:
            return
        for fields in batch:
            number += 1
            if number > MOST_ROWS:
                raise ValueError(f"{file}: there are more than {MOST_ROWS:,} rows; that is no exam, look what it holds")
            yield Row(place=Place(file=str(file), line=number, unit="row"), fields=fields)


def _batches(file: Path) -> Iterator[list[dict[str, Any]]]:
    import pyarrow
    from pyarrow import parquet

    size = 0
    with file.open("rb") as stream:
        start = stream.read(len(POINTER))
        if start == POINTER:
            read_bytes(file)
        stream.seek(0)
        if file.suffix.lower() == ".parquet":
            # as dictionaries: a long text that stands in a thousand rows is held once, until it is known how long
            whole = parquet.ParquetFile(stream)
            if whole.metadata.num_rows > MOST_ROWS:
                raise ValueError(f"{file}: there are more than {MOST_ROWS:,} rows; that is no exam, look what it holds")
            schema = whole.schema
            texts = [schema.column(i).path for i in range(len(schema)) if schema.column(i).physical_type in TEXTS]
            batches = parquet.ParquetFile(stream, read_dictionary=texts).iter_batches(batch_size=1024)
        # ``datasets`` writes Arrow's stream format; other programs write its file format under the same suffix.
        elif start.startswith(b"ARROW1"):
            reader = pyarrow.ipc.open_file(stream)
            batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
        else:
            batches = iter(pyarrow.ipc.open_stream(stream))
        for batch in batches:
            size += sum(_characters(column) for column in batch.columns)
            if size > LARGEST:
                raise ValueError(f"{file}: its rows unpack to more than {LARGEST:,} bytes; that is no exam")
            yield batch.to_pylist()


def _characters(column: Any) -> int:
    """Bytes of the texts in a column, a repeated one counted as often as it stands."""
    import pyarrow
    from pyarrow import compute

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        values = column.dictionary
        if not (pyarrow.types.is_string(values.type) or pyarrow.types.is_binary(values.type)):
            return len(column) * 8
        return int(compute.sum(compute.binary_length(values).take(column.indices)).as_py() or 0)
    if pyarrow.types.is_struct(kind):
        return sum(_characters(part) for part in column.flatten())
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return _characters(column.flatten())
    return int(column.nbytes)
