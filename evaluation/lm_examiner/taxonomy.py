"""Domains of knowledge: a tree of subjects, whose leaves are drawn with the seed.

The file is JSON, ``{"id", "name", "children": [...]}`` (or a list of such nodes). Ours has 26 subjects with 8 leaves
each. Google Trends' categories, which the paper uses, name some leaves under several parents: 1,426 nodes are 1,132
ids. A leaf counts once however often it is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import decode, read_bytes
from evaluation.templates import one_line, well_formed


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A leaf of the taxonomy. ``path``: the names from the top down to its parent (the first place it is named)."""

    id: str
    name: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """Leaves by unique id, in the file's order; ``nodes`` and ``ids`` count all nodes; ``sha256`` is the file's."""

    leaves: tuple[Domain, ...]
    nodes: int
    ids: int
    sha256: str


def read_taxonomy(path: Path | None = None) -> Taxonomy:
    """The taxonomy of a file, or our own. ValueError names the node that has not the form."""
    if path is None:
        data, where = (
            (resources.files("evaluation.lm_examiner") / "data" / "taxonomy.json").read_bytes(),
            "taxonomy.json",
        )
    elif path.is_file():
        data, where = read_bytes(path), str(path)
    else:
        raise ValueError(f"there is no taxonomy file {path}")
    try:
        tree = json.loads(decode(data, where))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where} is not JSON: {error}") from error
    leaves: dict[str, Domain] = {}
    ids: set[str] = set()
    nodes = 0
    for node, parents in _walk(tree, where):
        identity = str(node["id"])
        nodes += 1
        ids.add(identity)
        if not node.get("children"):
            leaves.setdefault(identity, Domain(id=identity, name=one_line(node["name"]), path=parents))
    if not leaves:
        raise ValueError(f"{where} has no leaves; it must be a tree of nodes with id, name and children")
    return Taxonomy(leaves=tuple(leaves.values()), nodes=nodes, ids=len(ids), sha256=sha256(data).hexdigest())


def draw_domains(taxonomy: Taxonomy, n: int, seed: int) -> list[Domain]:
    """``n`` different leaves, drawn with the seed: independent of the file's order. ValueError for more than it has.

    Two ids with one name (Google Trends has such) are one domain: the second would be the same exam again.
    """
    named: dict[str, Domain] = {}
    for leaf in taxonomy.leaves:
        named.setdefault(leaf.name.casefold(), leaf)
    if n > len(named):
        raise ValueError(f"asked for {n} domains, but the taxonomy has {len(named)} different leaves")
    return sorted(named.values(), key=lambda leaf: sha256(f"{seed}\x1fdomain\x1f{leaf.id}".encode()).digest())[:n]


def _walk(tree: Any, where: str) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    waiting: list[tuple[Any, tuple[str, ...]]] = [(node, ()) for node in (tree if isinstance(tree, list) else [tree])]
    waiting.reverse()
    while waiting:
        node, parents = waiting.pop()
        place = f"{where}: node {' > '.join(parents) or 'at the top'}"
        if not isinstance(node, dict) or not isinstance(node.get("name"), str) or not node["name"].strip():
            raise ValueError(f"{place}: {node!r:.80} is no node; it must have id, name and perhaps children")
        if not isinstance(node.get("id"), int | str) or isinstance(node.get("id"), bool):
            raise ValueError(f"{place} > {node['name']}: its id is {node.get('id')!r}; it must be a number or a text")
        if not str(node["id"]).strip() or any(t != well_formed(t) for t in (str(node["id"]), node["name"])):
            raise ValueError(f"{place}: the node {node['id']!r}, {node['name']!r} has a blank id, or half a character")
        children = node.get("children") or []
        if not isinstance(children, list):
            raise ValueError(f"{place} > {node['name']}: children is {children!r:.80}; it must be a list of nodes")
        yield node, parents
        waiting += [(child, (*parents, node["name"])) for child in reversed(children)]
