"""Token tables of the audited texts, from the ledger: what a heat map of log-probabilities shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from proctor.report.run_data import RunData
from serving.ledger import read_lines

MOST_TEXTS = 1_000
"""Per candidate: the page shows the heat maps of the first so many texts."""
Table = list[list[Any]]


def token_tables(data: RunData, candidate: str, texts: Mapping[tuple[str, str], str]) -> dict[str, Table]:
    """Rows [token, log-probability, rank or null] by text id, where the candidate's ledger has the text's table.

    texts: id by (prompt, continuation), as the audit asked for it. Of several tables of a text one with ranks counts.
    """
    decode = _decoder(data, candidate)
    found: dict[str, Table] = {}
    for line in read_lines(data.run.ledger(f"detect.{candidate}")):
        if line.get("role") != "candidate":
            continue
        for request, answer in zip(line["requests"], line["answers"], strict=True):
            prompt = request["prompt"]
            name = texts.get((prompt, request.get("continuation", ""))) if isinstance(prompt, str) else None
            if name is None or "logprobs" not in answer or (name in found and not answer["ranks"]):
                continue
            if name in found or len(found) < MOST_TEXTS:
                ranks = answer["ranks"] or [None] * len(answer["ids"])
                values = [round(v, 2) for v in answer["logprobs"]]
                found[name] = [list(row) for row in zip(decode(answer["ids"]), values, ranks, strict=True)]
    return found


def _decoder(data: RunData, candidate: str) -> Any:
    """Ids to the text of each; ``#id`` where the run folder has no tokenizer for the candidate."""
    run = data.run
    folders = [run.candidate_model(candidate)]
    if candidate not in run.experiment.candidates or run.experiment.candidates[candidate].recipe is None:
        given = run.experiment.candidates.get(candidate)
        base = given is None or given.model == run.experiment.base
        # every trained candidate keeps the base's tokenizer
        folders = [run.candidate_model(name) for name in run.experiment.candidates] if base else []
    file = next((f / "tokenizer.json" for f in folders if (f / "tokenizer.json").is_file()), None)
    if file is None:
        return lambda ids: [f"#{i}" for i in ids]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    pieces = json.loads(file.read_text(encoding="utf-8")).get("decoder", {}) or {}
    spaced = pieces.get("type") in ("Sequence", "Metaspace", "WordPiece")

    def decode(ids: list[int]) -> list[str]:
        if not spaced:  # byte level: a token's text is its own, spaces included
            return [tokenizer.decode([i], skip_special_tokens=False) for i in ids]
        return [(tokenizer.id_to_token(i) or f"#{i}").replace("\N{LOWER ONE EIGHTH BLOCK}", " ") for i in ids]

    return decode
