"""Where an experiment reads the environment (``${oc.env:NAME}``): what is written and shown keeps the reference.

People share run folders and pages; a variable may hold a token. Stages of a run read the variable again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_VARIABLE = re.compile(r"\$\{oc\.env:([A-Za-z_][A-Za-z0-9_]*)\}")


class Reference(NamedTuple):
    """place: keys and indices that lead to the value; text: with ``${oc.env:NAME}`` in it; value: what it came to"""

    place: tuple[str | int, ...]
    text: str
    value: str


def environment_references(config: Any, value: Any) -> tuple[Reference, ...]:
    """Where an OmegaConf configuration reads the environment, directly or by way of another value.

    value: the configuration resolved. It is resolved again with ``${oc.env:NAME}`` for what NAME holds."""
    from omegaconf import OmegaConf

    environment = os.environ
    try:  # for as long as this takes, every variable holds its own name
        os.environ = {name: f"${{oc.env:{name}}}" for name in environment}  # type: ignore[assignment]  # noqa: B003
        shown = OmegaConf.to_container(config, resolve=True)
    finally:
        os.environ = environment  # noqa: B003
    return tuple(
        Reference(place, text, str(_at(value, place))) for place, text in _texts(shown, ()) if _VARIABLE.search(text)
    )


def with_references(value: dict[str, Any], references: Iterable[Reference]) -> dict[str, Any]:
    """``value`` (changed in place) with the references where it still holds what they came to; a path that was made
    absolute stays."""
    for reference in references:
        *above, last = reference.place
        parent = _at(value, tuple(above))
        found = parent.get(last) if isinstance(parent, dict) else None
        if isinstance(found, dict) and str(found.get("path")) == reference.value:  # a model by its path alone
            found["path"] = reference.text
        elif isinstance(parent, list) and isinstance(last, int) and last < len(parent):
            parent[last] = reference.text if str(parent[last]) == reference.value else parent[last]
        elif isinstance(parent, dict) and last in parent and str(found) == reference.value:
            parent[last] = reference.text
    return value


def read_environment(value: Any, where: str) -> tuple[Any, tuple[Reference, ...]]:
    """``value`` with what the variables hold now, and where. ValueError names those that are not set."""
    references = [
        Reference(place, text, _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), text))
        for place, text in _texts(value, ())
        if _VARIABLE.search(text)
    ]
    missing = [name for name in variables(references) if name not in os.environ]
    if missing:
        raise ValueError(
            f"{where} reads the environment variables {', '.join(missing)}, which are not set; set them as they were "
            "when the run was made"
        )
    for reference in references:
        *above, last = reference.place
        _at(value, tuple(above))[last] = reference.value
    return value, tuple(references)


def variables(references: Iterable[Reference]) -> list[str]:
    """The names of the variables that are read."""
    return sorted({name for reference in references for name in _VARIABLE.findall(reference.text)})


def _at(value: Any, place: tuple[str | int, ...]) -> Any:
    for key in place:
        if isinstance(value, dict):
            value = value.get(key)
        else:
            value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
    return value


def _texts(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(part, (*place, key))
    elif isinstance(value, str):
        yield place, value
