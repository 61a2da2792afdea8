"""YAML to a validated model: OmegaConf interpolates, pydantic validates, and errors say what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.experiment.environment_references import Reference, environment_references
from proctor.experiment.yaml_limits import LONGEST, check_anchors, check_growth


class Read(NamedTuple):
    """An experiment file as plain data.

    references: where the environment was read
    """

    value: dict[str, Any]
    references: tuple[Reference, ...]


def read_yaml(path: Path, overrides: Sequence[str] = ()) -> Read:
    """The file as plain data, ``key.sub=value`` overrides applied. ValueError names the file and the line."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not path.is_file():
        raise ValueError(f"experiment file {path} does not exist")
    given = overridden(overrides)
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > LONGEST:
            raise ValueError(f"the file has {len(text):,} characters; an experiment has at most {LONGEST:,}")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None and not isinstance(root, yaml.MappingNode):
            kind = "a list" if isinstance(root, yaml.SequenceNode) else f"the single value {root.value!r:.60}"
            raise ValueError(f"the file must hold a mapping of keys (name: ...), not {kind}")
        check_anchors(root)
        config = OmegaConf.merge(OmegaConf.load(path), OmegaConf.create(given))
        check_growth(OmegaConf.to_container(config, resolve=False))
        value = OmegaConf.to_container(config, resolve=True)
        references = environment_references(config, value)
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: the values are nested too deeply") from error
    except (yaml.YAMLError, OmegaConfBaseException, ValueError) as error:
        raise ValueError(f"{path}: {str(error).strip()}") from error
    assert isinstance(value, dict)
    return Read({str(key): entry for key, entry in value.items()}, references)


def overridden(pairs: Sequence[str]) -> dict[str, Any]:
    """``key.sub=value`` pairs as nested plain data; values are YAML, the last of two with one key counts.

    ValueError names a pair of another form, whose value is not YAML, or whose key lies below a plain value.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    made: dict[str, Any] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise ValueError(f"{pair!r} is not of the form key.sub=value")
        plain(value, repr(pair))
        above: Any = made
        for parent in key.split(".")[:-1]:
            above = above.get(parent, {})
            if not isinstance(above, dict):
                raise ValueError(f"{pair!r}: {parent!r} has a value of its own already")
        try:
            made = OmegaConf.to_container(OmegaConf.merge(made, OmegaConf.from_dotlist([pair])))
        except (OmegaConfBaseException, ValueError, TypeError) as error:
            raise ValueError(f"{pair!r}: {str(error).strip()}") from error
    return made


def plain(text: str, where: str) -> Any:
    """What a text holds as YAML. ValueError begins with ``where``."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ValueError(f"{where} is not YAML: {problem}") from error
