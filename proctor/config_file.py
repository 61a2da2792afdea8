"""YAML to a validated model: OmegaConf interpolates, pydantic validates, and errors say what would be right."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

ModelT = TypeVar("ModelT", bound=BaseModel)


def read_yaml(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The file as plain data, ``key.sub=value`` overrides applied. ValueError names the file and the line."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not path.is_file():
        raise ValueError(f"experiment file {path} does not exist")
    for override in overrides:
        if "=" not in override or override.startswith("="):
            raise ValueError(f"override {override!r} is not of the form key.sub=value")
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        if root is not None and not isinstance(root, yaml.MappingNode):
            kind = "a list" if isinstance(root, yaml.SequenceNode) else f"the single value {root.value!r:.60}"
            raise ValueError(f"the file must hold a mapping of keys (name: ...), not {kind}")
        config = OmegaConf.merge(OmegaConf.load(path), OmegaConf.from_dotlist(list(overrides)))
        value = OmegaConf.to_container(config, resolve=True)
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: the values are nested too deeply") from error
    except (yaml.YAMLError, OmegaConfBaseException, ValueError) as error:
        raise ValueError(f"{path}: {str(error).strip()}") from error
    assert isinstance(value, dict)
    return {str(key): entry for key, entry in value.items()}


def validate(model: type[ModelT], value: Any, *, where: str) -> ModelT:
    """``value`` as a ``model``; ValueError with one line per fault: key, value, and what would be right."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ValueError("\n".join(explain(error, model, where))) from None


def explain(error: ValidationError, model: type[BaseModel], where: str) -> list[str]:
    lines = []
    for fault in error.errors(include_url=False):
        location = [str(part) for part in fault["loc"]]
        key = ".".join(location) or "(the whole)"
        if fault["type"] == "extra_forbidden":
            known = _known_keys(model, location[:-1])
            close = difflib.get_close_matches(location[-1], known, n=1, cutoff=0.5)
            mend = f"did you mean {close[0]!r}?" if close else f"known keys here: {', '.join(sorted(known))}"
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
