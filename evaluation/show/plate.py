"""One figure: what it shows in words, and its files. Equal runs give equal bytes."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from serving.files import write_bytes, write_text

if TYPE_CHECKING:
    from evaluation.show.table import Table

T = TypeVar("T")
N = TypeVar("N", "Plate", "Table")
WIDTH = 5.4
"""Inches: readable on a page of 400 pixels, and across one column of a paper."""
LOOK = {
    "svg.hashsalt": "proctor",  # a salt of our own and no date: equal runs give equal files
    "svg.fonttype": "none",
    "font.size": 10,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "text.parse_math": False,  # a candidate's name is not mathematics
}


@contextlib.contextmanager
def look() -> Iterator[None]:
    """Figures drawn inside have our look on matplotlib's defaults: no matplotlibrc of the working folder, or of the
    user, changes or breaks them."""
    import matplotlib

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", matplotlib.MatplotlibDeprecationWarning)
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(LOOK)
            yield


@dataclass(frozen=True, kw_only=True)
class Plate:
    """A drawn figure.

    name: of its files; title: heading on the page; caption: what is drawn, with units, intervals and n
    figure: matplotlib's
    """

    name: str
    title: str
    caption: str
    figure: Any


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A plate on disk; ``svg`` is the element for the page."""

    name: str
    title: str
    caption: str
    svg: str

    @property
    def files(self) -> tuple[str, str]:
        return f"figures/{self.name}.svg", f"figures/{self.name}.png"


def canvas(width: float = WIDTH, height: float = 3.6) -> Any:
    """An empty figure of our size, laid out so that nothing is cut."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw(make: Callable[[], Iterable[Plate]], folder: Path) -> list[Drawing]:
    """Makes the plates in our look and writes them."""
    with look():
        return [save(plate, folder) for plate in own_names(make())]


def save(plate: Plate, folder: Path) -> Drawing:
    """``<name>.svg`` and ``<name>.png`` (160 dpi) in ``folder``."""
    svg, png = io.BytesIO(), io.BytesIO()
    plate.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None, "Title": plate.title})
    plate.figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    text = svg.getvalue().decode("utf-8")
    write_text(folder / f"{plate.name}.svg", text)
    write_bytes(folder / f"{plate.name}.png", png.getvalue())
    return Drawing(name=plate.name, title=plate.title, caption=plate.caption, svg=_for_page(text, plate.name))


def _for_page(text: str, name: str) -> str:
    """The SVG element without metadata, its ids and its style made its own: many stand on one page."""
    element = text[text.find("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.S)
    element = re.sub(r"<style type=\"text/css\">.*?</style>", "", element, flags=re.S)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", element))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{name}-{match[1]}"' if match[1] in used else ""

    # ids and references are matplotlib's own: in text and attributes that hold data, quotes and angles are escaped
    element = re.sub(r' id="([^"<>]+)"', renamed, element)
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", element)


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c6d31", "#555555", "#a01c4b")
"""The first six are Okabe and Ito's, which people who are colour-blind can tell apart."""
MARKERS = "osD^vPX*<>"
LINES = ("-", "--", "-.", ":")


class Style(NamedTuple):
    """How a candidate is drawn in every figure: no two of 40 look alike."""

    colour: str
    marker: str
    line: str


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Each candidate's style, by its place among all of a run."""
    return {
        name: Style(
            COLOURS[place % len(COLOURS)],
            MARKERS[place % len(MARKERS)],
            LINES[(place // len(COLOURS)) % len(LINES)],
        )
        for place, name in enumerate(names)
    }


def apart(held: Mapping[str, T]) -> list[tuple[str, str, T]]:
    """The end of a file's name and of a heading for each of them: none for one alone."""
    if len(held) == 1:
        return [("", "", next(iter(held.values())))]
    return [(f".{name}", f": {name}", one) for name, one in held.items()]


def own_names(made: Iterable[N]) -> Iterator[N]:
    """The same plates or tables, of one name ``x`` the second as ``x_2``: a name is a file's, and none is lost."""
    taken: set[str] = set()
    for one in made:
        name, number = one.name, 1
        while name.casefold() in taken:
            number += 1
            name = f"{one.name}_{number}"
        taken.add(name.casefold())
        yield one if name == one.name else replace(one, name=name)


def error_bars(value: float, interval: Sequence[float] | None) -> list[list[float]] | None:
    """An interval as matplotlib wants it; a value outside, by rounding, has no bar on that side."""
    return None if not interval else [[max(0.0, value - interval[0])], [max(0.0, interval[1] - value)]]
