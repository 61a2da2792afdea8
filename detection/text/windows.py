"""Texts longer than the model's context: what an engine cut from the beginning is scored in windows.

An engine keeps the end of a text and drops its beginning (``TokenScores.dropped``). ``complete`` asks for the text
again in pieces: every token is scored exactly once, and every token but those at the very beginning has at least half
a context before it. Pieces end before a single space, where the common tokenizers end a token, so that the ids are
those of the whole text; where there is no space (Chinese, a long number) a seam may change the ids next to it.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from serving.records import Demand, Dialogue, Score, Segment, TokenScores

LongTexts = Literal["truncate", "window"]
"""``truncate``: the beginning is dropped, and counted; ``window``: scored in windows."""
_MARGIN = 0.8  # pieces are planned shorter than half a context, for their length in tokens is only estimated


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters ``begin`` to ``end`` are scored; ``start`` to ``begin`` are their context."""

    start: int
    begin: int
    end: int


def complete(demands: Sequence[Demand], replies: Sequence[Any]) -> Dialogue[list[Any]]:
    """The replies, each truncated table of a plain text replaced by that of the whole text.

    Left as they are: chats, and requests for the answer alone (whose context may be cut).
    """
    whole = list(replies)
    running = {
        i: _windows(demand, reply)
        for i, (demand, reply) in enumerate(zip(demands, replies, strict=True))
        if isinstance(demand, Score) and isinstance(demand.prompt, str) and not demand.answer_only and reply.dropped
    }
    pending = {i: next(dialogue) for i, dialogue in running.items()}
    while pending:
        answers = iter((yield [demand for wanted in pending.values() for demand in wanted]))
        for i, wanted in list(pending.items()):
            try:
                pending[i] = running[i].send([next(answers) for _ in wanted])
            except StopIteration as done:
                whole[i] = done.value
                del pending[i]
    return whole


def _windows(demand: Score, truncated: TokenScores) -> Generator[list[Score], list[TokenScores], TokenScores]:
    """Asks for all pieces, and again for those that turn out to hold too many tokens, in halves."""
    text = f"{demand.prompt}{demand.continuation}"
    boundary = len(demand.prompt) if demand.continuation else len(text)
    context = len(truncated.ids) + 1
    width = len(text) / (context + truncated.dropped)  # characters per token
    seams = [match.start() for match in re.finditer(r"(?<=\S) (?=\S)", text)]
    reach = int(2 * context * width)  # characters of context: more than an engine can use, so that it is full
    open_pieces = _pieces(len(text), seams, max(1, int(_MARGIN * context / 2 * width)), boundary, reach)
    done: dict[int, TokenScores] = {}
    while open_pieces:
        tables = yield [
            Score(
                role=demand.role,
                prompt=text[piece.start : piece.begin],
                continuation=text[piece.begin : piece.end],
                bos=demand.bos,
                answer_only=True,
                moments=demand.moments,
            )
            for piece in open_pieces
        ]
        again = []
        for piece, table in zip(open_pieces, tables, strict=True):
            short_of_context = piece.start > 0 and not table.dropped
            too_long = bool(table.dropped) if piece.begin == 0 else len(table.ids) > context // 2
            if short_of_context:
                again.append(Piece(0, piece.begin, piece.end))
            elif too_long and piece.end - piece.begin > 1:
                middle = _seam(seams, piece.begin, (piece.begin + piece.end) // 2, piece.end)
                again += [Piece(piece.start, piece.begin, middle), Piece(max(0, middle - reach), middle, piece.end)]
            else:
                done[piece.begin] = table
        open_pieces = again
    return _joined([(begin >= boundary, done[begin]) for begin in sorted(done)])


def _pieces(length: int, seams: Sequence[int], size: int, boundary: int, reach: int) -> list[Piece]:
    """Pieces of about ``size`` characters; the answer begins with a piece of its own."""
    cuts = [0]
    for stop in dict.fromkeys((_seam(seams, 0, boundary, length) if boundary < length else length, length)):
        while stop - cuts[-1] > size:
            cuts.append(_seam(seams, cuts[-1], cuts[-1] + size, stop))
        if stop > cuts[-1]:
            cuts.append(stop)
    return [Piece(max(0, begin - reach), begin, end) for begin, end in itertools.pairwise(cuts)]


def _seam(seams: Sequence[int], after: int, wanted: int, before: int) -> int:
    """The last seam at or before ``wanted``, else the first one after it, inside (after, before); else ``wanted``."""
    at = bisect.bisect_right(seams, wanted)
    for candidate in (*seams[max(0, at - 1) : at], *seams[at : at + 1]):
        if after < candidate < before:
            return candidate
    return wanted


def _joined(parts: Sequence[tuple[bool, TokenScores]]) -> TokenScores:
    """One table of all pieces, in order; (whether the piece belongs to the answer, its table)."""
    segments: list[Segment] = []
    for answer, table in parts:
        segments += ["answer" if answer else "prompt"] * len(table.ids)
    columns: dict[str, Any] = {
        name: tuple(value for _, table in parts for value in getattr(table, name))
        for name in ("ids", "logprobs", "means", "stds", "entropies", "ranks", "greedy")
    }
    return TokenScores(
        segments=tuple(segments),
        asked_tokens=sum(table.asked_tokens for _, table in parts),
        computed_tokens=sum(table.computed_tokens for _, table in parts),
        **columns,
    )
