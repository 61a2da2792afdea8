"""Few lines of YAML can stand for more than any memory holds, by anchors or by interpolations: what is refused."""

from __future__ import annotations

import re
from typing import Any

LONGEST = 2_000_000
"""Characters of an experiment file."""
MOST_VALUES = 200_000
MOST_CHARACTERS = 50_000_000
_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_DYNAMIC = "\0"


def check_anchors(root: Any) -> None:
    """ValueError where anchors (``&``, ``*``) stand for too many values. root: a composed node, or None"""
    if root is not None and _nodes(root, {}) > MOST_VALUES:
        raise ValueError(f"its anchors (&, *) stand for more than {MOST_VALUES:,} values; write fewer")


def _nodes(node: Any, known: dict[int, int]) -> int:
    """Values below a node, one behind an anchor as often as it stands."""
    import yaml

    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MOST_VALUES + 1  # a node inside itself has no end
    parts: list[Any] = []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        parts = node.value
    known[id(node)] = 1 + sum(_nodes(part, known) for part in parts)
    return known[id(node)]


def check_growth(raw: Any) -> None:
    """ValueError where interpolations (``${...}``) insert texts or subtrees until they are too large to hold.

    raw: plain data with its interpolations as they were written. What one inserts is estimated from above where it
    does not name a place outright.
    """
    if _Growth(raw).of(raw) > MOST_CHARACTERS:
        raise ValueError(f"its interpolations (${{...}}) grow to more than {MOST_CHARACTERS:,} characters; write less")


class _Growth:
    """Characters of values once everything is inserted."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.known: dict[int, int] = {}
        self.by_name: dict[str, list[Any]] = {}
        self._name(raw)

    def _name(self, value: Any) -> None:
        for key, part in _parts(value):
            self.by_name.setdefault(str(key), []).append(part)
            self._name(part)

    def of(self, value: Any) -> int:
        if not isinstance(value, dict | list) and not (isinstance(value, str) and "${" in value):
            return 1 + len(str(value))
        if id(value) not in self.known:
            self.known[id(value)] = 0  # a circle is OmegaConf's to complain about
            if isinstance(value, str):
                size = len(value) + sum(self._target(name) for name in _names(value))
            else:
                size = 1 + sum(self.of(part) for _, part in _parts(value))
            self.known[id(value)] = min(size, MOST_CHARACTERS + 1)
        return self.known[id(value)]

    def _target(self, name: str) -> int:
        if ":" in name:  # a resolver: the environment, or what is made of names that are counted themselves
            return 1
        steps = [step for step in re.split(r"[.\[\]]+", name) if step]
        if _DYNAMIC not in name and not name.startswith("."):
            found: Any = self.raw
            for step in steps:
                found = {str(key): part for key, part in _parts(found)}.get(step)
            return self.of(found)
        last = steps[-1] if steps else _DYNAMIC
        named = [self.raw] if _DYNAMIC in last else self.by_name.get(last, [])
        return max((self.of(value) for value in named), default=1)


def _parts(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _names(text: str) -> list[str]:
    """What stands in the braces, inner ones first; where a name holds another interpolation, a mark."""
    found: list[str] = []
    while match := _REFERENCE.search(text):
        found.append(match[1].strip())
        text = text[: match.start()] + _DYNAMIC + text[match.end() :]
    return found
