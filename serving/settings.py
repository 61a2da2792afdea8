"""Settings that a user gives: validated, and explained where they are wrong."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
)

from serving.named import did_you_mean, nearest


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


ModelT = TypeVar("ModelT", bound=BaseModel)


def validate(model: type[ModelT], value: Any, *, where: str) -> ModelT:
    """``value`` as a ``model``; ValueError with one line per fault: key, value, and what would be right."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ValueError("\n".join(explain(error, model, where))) from None


def checked_options(name: str, options: type[ModelT], given: Mapping[str, Any]) -> ModelT:
    """The options of something that has a name (a protocol, a detector ...).

    ValueError names every wrong option, its value, and what would be right.
    """
    try:
        return options.model_validate(dict(given))
    except ValidationError as error:
        known = list(options.model_fields)
        faults = []
        for fault in error.errors(include_url=False):
            where = ".".join([name, *map(str, fault["loc"])])
            if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
                near = did_you_mean(str(fault["loc"][0]), known)
                hint = f"; {near}" if near else ""
                faults.append(f"{where}: unknown option{hint}; its options: {', '.join(known) or 'none'}")
            else:
                said = fault["msg"].removeprefix("Value error, ")
                faults.append(f"{where}: {said} (it is {fault['input']!r}); its options: {', '.join(known) or 'none'}")
        raise ValueError("; ".join(faults)) from error


def explain(error: ValidationError, model: type[BaseModel], where: str) -> list[str]:
    lines = []
    for fault in error.errors(include_url=False):
        location = [str(part) for part in fault["loc"]]
        key = ".".join(location) or "(the whole)"
        if fault["type"] == "extra_forbidden":
            known = _known_keys(model, location[:-1])
            mend = nearest(location[-1], sorted(known), all_known="known keys here")
            lines.append(f"{where}: unknown key {key!r}; {mend}")
        elif fault["type"] == "missing":
            meaning = _meaning(model, location)
            lines.append(f"{where}: key {key!r} is missing" + (f": {meaning}" if meaning else ""))
        else:
            given = "" if isinstance(fault["input"], dict | list) else f" (given: {fault['input']!r})"
            place = f"{where}: {key}" if location else where
            lines.append(f"{place}: {fault['msg'].removeprefix('Value error, ')}{given}")
    return lines


def _meaning(model: type[BaseModel], path: Sequence[str]) -> str:
    """What the key at ``path`` of the file's top level says of itself; empty where it says nothing."""
    field = model.model_fields.get(path[0]) if len(path) == 1 else None
    return (field.description if field else None) or ""


def _known_keys(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Field names of the model that stands at ``path`` (dictionaries and optionals are walked through)."""
    current: Any = model
    for part in path:
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = current.model_fields.get(part)
            if field is None:
                return []
            current = _unwrap(field.annotation)
        else:
            current = _unwrap(_value_type(current))
    current = _unwrap(current)
    if isinstance(current, type) and issubclass(current, BaseModel):
        return list(current.model_fields)
    return []


def _value_type(annotation: Any) -> Any:
    arguments = typing.get_args(annotation)
    return arguments[-1] if arguments else None


def _unwrap(annotation: Any) -> Any:
    """The model class inside ``X | None``, or the annotation itself."""
    for argument in typing.get_args(annotation):
        if isinstance(argument, type) and issubclass(argument, BaseModel):
            origin = typing.get_origin(annotation)
            if origin not in (dict, list, tuple):
                return argument
    return annotation
