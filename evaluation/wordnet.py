"""Synonyms from a folder of WordNet's database files (Fellbaum 1998; file formats: the manual page wndb(5WN)).

NLTK's own reader wants NLTK's data folder beside the user's and refuses folders outside it; METEOR needs no more than
the words that share a synset with a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PARTS = ("noun", "verb", "adj", "adv")
# Endings to take off, per part of speech, as WordNet's own morphological search does (morphy(7WN)).
_ENDINGS = {
    "noun": [
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ],
    "verb": [
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ],
    "adj": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "adv": [],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lemma:
    """One word of a synset, in the form that NLTK's METEOR reads."""

    text: str

    def name(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Synset:
    """Words with one meaning, in the form that NLTK's METEOR reads."""

    words: tuple[str, ...]

    def lemmas(self) -> list[Lemma]:
        return [Lemma(word) for word in self.words]


class WordNet:
    """The synsets of a folder with ``index.*`` and ``data.*`` (and ``*.exc``, irregular forms, where they are there).

    ValueError for a folder without them, or a line that isn't in WordNet's format.
    """

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self._data = {part: (folder / f"data.{part}").read_bytes() for part in _PARTS}
        self._offsets = {part: _index(folder / f"index.{part}") for part in _PARTS}
        self._irregular = {part: _exceptions(folder / f"{part}.exc") for part in _PARTS}
        self.synsets = cache(self._synsets)

    def _synsets(self, word: str) -> list[Synset]:
        """All synsets of a lower-case word, its inflected forms included; [] for a word that WordNet lacks."""
        found = []
        for part in _PARTS:
            for form in self._base_forms(word, part):
                found += [self._synset(part, offset) for offset in self._offsets[part].get(form, ())]
        return found

    def _base_forms(self, word: str, part: str) -> list[str]:
        forms = [word, *self._irregular[part].get(word, ())]
        if len(forms) == 1:
            forms += [
                word[: -len(ending)] + base
                for ending, base in _ENDINGS[part]
                if word.endswith(ending) and len(word) > len(ending)
            ]
        return list(dict.fromkeys(forms))

    def _synset(self, part: str, offset: int) -> Synset:
        """The line at ``offset``: offset, file number, type, number of words (hexadecimal), then word and id each."""
        data = self._data[part]
        fields = data[offset : offset + 20_000].split(b"\n", 1)[0].decode("utf-8", "replace").split()
        try:
            if int(fields[0]) != offset:
                raise ValueError
            words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        except (ValueError, IndexError):
            raise ValueError(
                f"WordNet's data.{part} has no synset at byte {offset}, where index.{part} says so"
            ) from None
        return Synset(tuple(word.partition("(")[0].lower() for word in words))  # "(p)" marks an adjective's position


def check_folder(folder: Path) -> None:
    """ValueError if the folder lacks one of WordNet's database files."""
    names = [f"{kind}.{part}" for kind in ("index", "data") for part in _PARTS]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"{folder} is not a folder of WordNet's database files: it has no {missing[0]}; it must hold "
            + ", ".join(names)
        )


def _index(path: Path) -> dict[str, tuple[int, ...]]:
    """Lemma -> offsets. A line: lemma, part, synsets, pointers, their symbols, senses, tagged senses, offsets."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), start=1):
        if line.strip() and not line.startswith(" "):  # the licence at the top is indented
            fields = line.split()
            try:
                count = int(fields[2])
                offsets = tuple(int(field) for field in fields[-count:])
                if count < 1 or len(fields) != 6 + int(fields[3]) + count:
                    raise ValueError
            except (ValueError, IndexError):
                raise ValueError(f"{path}:{number}: not a line of a WordNet index: {line[:60]!r}") from None
            found[fields[0]] = offsets
    return found


def _exceptions(path: Path) -> dict[str, tuple[str, ...]]:
    """Irregular form -> base forms; {} if there is no such file."""
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return {fields[0]: tuple(fields[1:]) for fields in map(str.split, lines) if len(fields) > 1}
