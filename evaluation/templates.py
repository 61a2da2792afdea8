"""Prompts are text files: how they are filled, and how foreign text is put into them.

Whatever a model or a benchmark wrote is data. ``quote`` marks each of its lines with ``| ``, so that no line of it can
pass for one of ours: not a speaker's label, not a heading, not an order to the judge.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template

_LINE_ENDS = re.compile("\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f]")
_MARKS = re.compile(r"^[ \t]*(?:\|[ \t]?)+")
CUT_MARK = "[... cut]"
EMPTY_MARK = "(no text)"


def render(name: str, *, package: str = "evaluation", **values: object) -> str:
    """The prompt file ``name`` of the package (in ``templates/`` of it, or of a room), its variables filled in.

    White space at its ends is left out. A variable that the file names and the caller doesn't give is an error
    (jinja2.UndefinedError).
    """
    return _template(package, name).render(**values).strip()


def prompt_hash(name: str, *, package: str = "evaluation") -> str:
    """SHA-256 of the prompt file, as hexadecimal digits: it stands in the records and in a stage's input digest."""
    return hashlib.sha256(template_source(name, package=package).encode()).hexdigest()


def quote(text: str, limit: int | None = None) -> str:
    """``text`` as a quotation: ``| `` before each line, whatever character ends the line.

    At most ``limit`` characters are kept; a line of ours, ``[... cut]``, follows then. An empty text (or one of white
    space only) becomes ``(no text)``, which carries no mark either, so neither can be forged from inside. Control
    characters and lone surrogates become U+FFFD.
    """
    cut = limit is not None and len(text) > limit
    kept = well_formed(_CONTROLS.sub("\ufffd", text[:limit] if cut else text)).strip()
    lines = [f"| {line}".rstrip() for line in _LINE_ENDS.split(kept)] if kept else [EMPTY_MARK]
    return "\n".join([*lines, CUT_MARK] if cut else lines)


def unquoted(text: str) -> str:
    """``text`` without the marks of quotation at its lines' beginnings, and without white space at its ends.

    Weak models imitate the marks that they were shown.
    """
    return "\n".join(_MARKS.sub("", line) for line in _LINE_ENDS.split(text.strip())).strip()


def one_line(text: str) -> str:
    """``text`` with every run of white space (line ends included) as one space."""
    return " ".join(text.split())


def well_formed(text: str) -> str:
    """``text`` with every lone surrogate, which no tokenizer and no file can hold, as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_labels(text: str, labels: Sequence[str]) -> str:
    """``text`` as part of a plain transcript: no line of it begins with a speaker's label (``User:``).

    Such a line, whatever its case and the marks before it, is joined to the one before. Every line ends with a newline.
    """
    lines = _LINE_ENDS.split(text.strip())
    label = re.compile(rf"[\W_]*(?:{'|'.join(map(re.escape, labels))})[^\w\n]*[:\uff1a]", re.IGNORECASE)
    joined = lines[0]
    for line in lines[1:]:
        joined += f" {line.lstrip()}" if label.match(line) else f"\n{line}"
    return joined


def template_source(name: str, *, package: str = "evaluation") -> str:
    """The text of a template file. FileNotFoundError if the package has none of that name."""
    root = resources.files(package)
    homes = [root / "templates", *sorted((room / "templates" for room in root.iterdir() if room.is_dir()), key=str)]
    file = next((home / name for home in homes if (home / name).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"{package} has no template {name!r}")
    return file.read_text(encoding="utf-8")


@cache
def _template(package: str, name: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    # Not HTML: escaping would change the text that the model reads.
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
    return environment.from_string(template_source(name, package=package))
