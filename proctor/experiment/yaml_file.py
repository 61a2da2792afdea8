"""YAML to a validated model: OmegaConf interpolates, pydantic validates, and errors say what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


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
