"""Prompts become token ids on our side, once, in the same way for serving, scoring and training.

Three promises, each a test:

* Text from outside (questions, replies) never turns into special tokens: "<|im_start|>" inside a reply is encoded as
  the plain characters it is. Where no content spells a special token, the ids are exactly those of
  ``tokenizer.apply_chat_template(tokenize=True)``, after a BOS where the tokenizer adds one and the template does not.
* Exactly one BOS at the beginning (policy ``model`` or ``always``), or none (``never``).
* The same conversation gives the same ids on any day: templates that print the date get a fixed one.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from serving.records import BosPolicy, Message, Prompt, Segment

PINNED_DATE = datetime.datetime(2024, 7, 26)
LONGEST_FRAME = 1_000_000
"""Characters that a chat template may add of its own."""
TRANSCRIPT_STOPS = ("\nUser:", "\nSystem:")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Token ids of a prompt and the segment of each; ``template`` are the special tokens that a chat template sets."""

    ids: tuple[int, ...]
    segments: tuple[Segment, ...]


def render(
    tokenizer: Any, prompt: Prompt, *, bos: BosPolicy = "model", add_generation_prompt: bool = True
) -> tuple[int, ...]:
    """Token ids of a text or a chat, ready to be completed."""
    return render_with_continuation(tokenizer, prompt, "", bos=bos, add_generation_prompt=add_generation_prompt).ids


def render_with_continuation(
    tokenizer: Any,
    prompt: Prompt,
    continuation: str,
    *,
    bos: BosPolicy = "model",
    add_generation_prompt: bool = True,
) -> Rendered:
    """Ids of prompt + continuation, tokenised as one string; tokens that reach past the boundary are ``answer``.

    A special token set by the template is ``template``, a leading BOS is ``bos``; everything else is ``prompt``, the
    template's plain words (role names) too.
    """
    if isinstance(prompt, str):
        pieces = _Pieces(tokenizer)
        pieces.add(prompt, continuation)
        begins_with_bos = False
    else:
        text, restore = chat_text(tokenizer, prompt, add_generation_prompt=add_generation_prompt)
        if text is None:
            pieces = _Pieces(tokenizer)
            pieces.add(transcript(prompt, add_generation_prompt), continuation)
            begins_with_bos = False
        else:
            pieces = _encode_chat(tokenizer, text, continuation, restore)
            begins_with_bos = bool(pieces.ids) and pieces.ids[0] == tokenizer.bos_token_id
    ids, segments = pieces.ids, pieces.segments
    wants_bos = bos == "always" or (bos == "model" and (begins_with_bos or _adds_bos(tokenizer)))
    if begins_with_bos:
        while len(ids) > 1 and ids[1] == tokenizer.bos_token_id:
            del ids[1], segments[1]
        if wants_bos or _bos_is_structural(tokenizer, prompt):
            segments[0] = "bos"
        else:
            del ids[0], segments[0]
    elif wants_bos:
        if tokenizer.bos_token_id is None:
            if bos == "always":
                raise ValueError("bos: always, but this tokenizer has no BOS token; use bos: model or never")
        else:
            ids.insert(0, tokenizer.bos_token_id)
            segments.insert(0, "bos")
    return Rendered(ids=tuple(ids), segments=tuple(segments))


def last_tokens(text: Rendered, limit: int) -> tuple[Rendered, int]:
    """The end of a text of more than ``limit`` tokens, its BOS kept in front of it, and how many tokens were cut.

    A model was trained on texts that begin with its BOS: without one its first predictions are of another kind.
    """
    cut = max(0, len(text.ids) - limit)
    if not cut:
        return text, 0
    bos = int(text.segments[0] == "bos" and limit > 1)
    start = len(text.ids) - (limit - bos)
    return Rendered(ids=text.ids[:bos] + text.ids[start:], segments=text.segments[:bos] + text.segments[start:]), cut


def chat_text(
    tokenizer: Any, messages: Sequence[Message], *, add_generation_prompt: bool = True
) -> tuple[str | None, Callable[[str], str]]:
    """The rendered template with special tokens in contents masked, and the function that unmasks them.

    None where the tokenizer has no template (a base model). A template that refuses or drops a system message gets it
    folded into the first user turn; one that insists on alternating roles gets neighbours of one role joined.
    """
    if not getattr(tokenizer, "chat_template", None):
        return None, lambda text: text
    mask, restore = _content_mask(tokenizer, messages)
    rows = [{"role": m.role, "content": mask(m.content)} for m in messages]
    error: Exception | None = None
    for variant in (rows, _folded(rows), _alternating(_folded(rows))):
        try:
            text = tokenizer.apply_chat_template(
                variant,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                strftime_now=lambda form: PINNED_DATE.strftime(form),
                date_string=PINNED_DATE.strftime("%d %b %Y"),
            )
        except Exception as problem:  # templates raise jinja2 errors of several kinds
            error = error or problem
            continue
        if len(text) > LONGEST_FRAME + 4 * sum(len(row["content"]) for row in variant):
            raise ValueError(f"the model's chat template writes {len(text):,} characters about this conversation")
        if all(row["content"].strip() in text for row in variant):
            return str(text), restore
        error = error or ValueError("the template leaves out a message")
    raise ValueError(f"the model's chat template refuses this conversation: {error}") from error


def transcript(messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
    """The conversation as plain text, for models without a chat template.

    A line of content that looks like a speaker's label is moved one space to the right, so that no reply can open a
    turn; the ``TRANSCRIPT_STOPS`` cut a model that goes on for the other side.
    """
    labels = {"system": "System:", "user": "User:", "assistant": "Assistant:"}
    blocks = []
    for message in messages:
        lines = message.content.splitlines() or [""]
        safe = [f" {line}" if line.startswith(tuple(labels.values())) else line for line in lines]
        blocks.append(f"{labels[message.role]} " + "\n".join(safe))
    if add_generation_prompt:
        blocks.append("Assistant:")
    return "\n\n".join(blocks)


class _Pieces:
    """Ids and segments gathered piece by piece."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.ids: list[int] = []
        self.segments: list[Segment] = []

    def add(self, text: str, continuation: str, specials: frozenset[int] = frozenset()) -> None:
        """Encodes text + continuation as one string; special tokens are recognised only with ``specials`` given."""
        if not text and not continuation:
            return
        joint = self.tokenizer(
            text + continuation,
            add_special_tokens=False,
            split_special_tokens=not specials,
            return_offsets_mapping=bool(continuation),
        )
        ids = joint["input_ids"]
        ends = [end for _, end in joint["offset_mapping"]] if continuation else [0] * len(ids)
        self.ids.extend(ids)
        self.segments.extend(
            "template" if index in specials else "answer" if end > len(text) else "prompt"
            for index, end in zip(ids, ends, strict=True)
        )


def _encode_chat(tokenizer: Any, text: str, continuation: str, restore: Callable[[str], str]) -> _Pieces:
    """Encodes a rendered template: its own special tokens become ids, those spelled in contents stay plain text.

    A stretch between two of the template's special tokens in which a content spells one is encoded alone, with no token
    recognised; everything else goes to the tokenizer as it stands, for a tokenizer may treat the beginning of a text in
    its own way (Llama-2, Mistral), and a special token may swallow the white space beside it (Phi-3).
    """
    table = _special_ids(tokenizer)
    specials = frozenset(table.values())
    pieces = _Pieces(tokenizer)
    if not table:
        pieces.add(text, continuation)
        return pieces
    pattern = re.compile("(" + "|".join(re.escape(token) for token in sorted(table, key=len, reverse=True)) + ")")
    parts = pattern.split(text)
    last = len(parts) - 1
    clean = ""
    for index in range(0, len(parts), 2):
        part, plain = parts[index], restore(parts[index])
        spelled = plain != part or (index == last and pattern.search(part + continuation))
        if spelled:
            pieces.add(clean, "", specials)
            if index > 0 and _swallows(tokenizer, table[parts[index - 1]], "rstrip"):
                plain = plain.lstrip()
            if index < last and _swallows(tokenizer, table[parts[index + 1]], "lstrip"):
                plain = plain.rstrip()
            pieces.add(plain, continuation if index == last else "")
            clean = ""
        else:
            clean += part
        if index < last:
            clean += parts[index + 1]
    if not spelled:
        pieces.add(clean, continuation, specials)
    return pieces


def _swallows(tokenizer: Any, index: int, side: str) -> bool:
    """Whether a special token takes the white space on its right (``rstrip``) or left (``lstrip``) with it."""
    return bool(getattr(tokenizer.added_tokens_decoder.get(index), side, False))


def _special_ids(tokenizer: Any) -> dict[str, int]:
    """Every added token by its spelling: what the tokenizer would cut out of a text before encoding it."""
    table = {str(token): index for index, token in tokenizer.added_tokens_decoder.items()}
    for token, index in zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True):
        table.setdefault(token, index)
    return {token: index for token, index in table.items() if token.strip()}


def _content_mask(tokenizer: Any, messages: Sequence[Message]) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """Replaces special tokens spelled in contents by private-use marks that no content contains, and back."""
    everything = "".join(message.content for message in messages)
    present = [token for token in _special_ids(tokenizer) if token in everything]
    if not present:
        return (lambda text: text), (lambda text: text)
    present.sort(key=len, reverse=True)
    taken = everything + str(tokenizer.chat_template) + "".join(_special_ids(tokenizer))
    marks = {}
    code = 0xE000
    for token in present:
        while chr(code) in taken:
            code += 1
        marks[token] = chr(code)
        code += 1

    def mask(text: str) -> str:
        for token, mark in marks.items():
            text = text.replace(token, mark)
        return text

    def restore(text: str) -> str:
        for token, mark in marks.items():
            text = text.replace(mark, token)
        return text

    return mask, restore


def _folded(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A system message becomes the beginning of the first user turn."""
    if not rows or rows[0]["role"] != "system":
        return rows
    system, rest = rows[0]["content"], rows[1:]
    if rest and rest[0]["role"] == "user":
        return [{"role": "user", "content": f"{system}\n\n{rest[0]['content']}"}, *rest[1:]]
    return [{"role": "user", "content": system}, *rest]


def _alternating(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Neighbouring turns of one role become one; a conversation that opens with the assistant gets a user turn."""
    joined: list[dict[str, str]] = []
    for row in rows:
        if joined and joined[-1]["role"] == row["role"]:
            joined[-1] = {"role": row["role"], "content": f"{joined[-1]['content']}\n\n{row['content']}"}
        else:
            joined.append(dict(row))
    if joined and joined[0]["role"] == "assistant":
        joined.insert(0, {"role": "user", "content": "Hello."})
    return joined


def _adds_bos(tokenizer: Any) -> bool:
    """Whether the tokenizer itself puts a BOS in front of a text."""
    if tokenizer.bos_token_id is None:
        return False
    ids = tokenizer("a", add_special_tokens=True)["input_ids"]
    return bool(ids) and ids[0] == tokenizer.bos_token_id


def _bos_is_structural(tokenizer: Any, prompt: Prompt) -> bool:
    """ChatML models use one token as BOS and as the mark that opens every turn: there it can't be left out."""
    if isinstance(prompt, str):
        return False
    text, _ = chat_text(tokenizer, [Message(role="user", content="a"), Message(role="assistant", content="b")])
    return text is not None and text.count(tokenizer.bos_token) > 1
