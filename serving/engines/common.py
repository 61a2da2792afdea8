"""What both real engines do alike with a request: ids, room in the context, the end of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serving.model.fingerprint import ModelError
from serving.model.folder import read_config, read_object
from serving.model.spec import ModelSpec
from serving.records import Completion, FinishReason, Request
from serving.rendering import TRANSCRIPT_STOPS, render
from serving.template_trial import check_template


class Prepared(NamedTuple):
    """A request ready for an engine.

    room: tokens it may still produce (0: no room at all)
    thinking: whether the template has opened the reasoning tag in the prompt, so that the answer begins inside it
    tag_ids: the reasoning tags' token ids where they are special tokens, which a decoded text leaves out
    """

    ids: tuple[int, ...]
    room: int
    stop: tuple[str, ...]
    thinking: bool = False
    tag_ids: tuple[int, int] | None = None


def load_tokenizer(spec: ModelSpec, folder: Path) -> Any:
    """The model's tokenizer with the template the spec asks for. ModelError where it can't be loaded."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except BaseException as error:  # of any kind where a file is damaged; a panic of tokenizers is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(f"the tokenizer of {folder} can't be loaded: {error}") from error
    if spec.chat_template == "none":
        tokenizer.chat_template = None
    elif spec.chat_template is not None:
        tokenizer.chat_template = Path(spec.chat_template).expanduser().read_text(encoding="utf-8")
    check_template(tokenizer.chat_template, str(spec.chat_template or folder))
    return tokenizer


def context_length(spec: ModelSpec, folder: Path) -> int:
    """Tokens of context: the spec's max_length, checked against what the model was built for."""
    config = read_config(folder)
    text_config = config.get("text_config") or config
    own = text_config.get("max_position_embeddings") or text_config.get("n_positions") or 2048
    if not isinstance(own, int):
        raise ModelError(f"{folder / 'config.json'}: max_position_embeddings is {own!r:.80}, not a number of tokens")
    if spec.max_length is not None and spec.max_length > own:
        raise ModelError(
            f"max_length is {spec.max_length}, but the model {folder} has a context of {own} tokens; use at most {own}"
        )
    return int(spec.max_length or own)


def end_ids(folder: Path, tokenizer: Any) -> list[int]:
    """Every token that ends an answer: the tokenizer's EOS and those of generation_config.json and config.json."""
    found: set[int] = set() if tokenizer.eos_token_id is None else {tokenizer.eos_token_id}
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if path.is_file():
            value = read_object(path).get("eos_token_id")
            ids = value if isinstance(value, list) else [] if value is None else [value]
            if not all(type(index) is int and 0 <= index < 2**31 for index in ids):
                raise ModelError(f"{path}: eos_token_id is {str(value)[:80]}; it must be an id, or a list of ids")
            found.update(ids)
    return sorted(found)


def prepare(spec: ModelSpec, tokenizer: Any, max_length: int, requests: Sequence[Request]) -> list[Prepared]:
    """Renders requests to ids. A prompt that leaves no room gets room 0: its answer is finish_reason ``context``."""
    prepared = []
    tag_ids = special_tags(tokenizer, spec.reasoning_tags)
    for request in requests:
        ids = render(tokenizer, request.prompt, bos=spec.bos)
        room = max(0, min(request.sampling.max_tokens, max_length - 1 - len(ids)))
        chat_without_template = not isinstance(request.prompt, str) and not getattr(tokenizer, "chat_template", None)
        stops = (*request.sampling.stop, *spec.stop, *(TRANSCRIPT_STOPS if chat_without_template else ()))
        thinking = bool(
            spec.reasoning_tags
            and not isinstance(request.prompt, str)
            and tokenizer.decode(ids[-16:]).rstrip().endswith(spec.reasoning_tags[0])
        )
        prepared.append(
            Prepared(
                ids, room if ids else 0, tuple(dict.fromkeys(stops)), thinking, None if request.schema else tag_ids
            )
        )
    return prepared


def completion(
    spec: ModelSpec, request: Request, prepared: Prepared, text: str, finish_reason: FinishReason, output_tokens: int
) -> Completion:
    """A Completion from raw text: stop strings cut, reasoning apart. Structured answers hold no reasoning."""
    for stop in prepared.stop:
        if (at := text.find(stop)) != -1:
            text, finish_reason = text[:at], "stop"
    tags = None if request.schema else _MARKS if prepared.tag_ids is not None else spec.reasoning_tags
    answer = split_reasoning(tags[0] + text if tags and prepared.thinking else text, tags)
    if prepared.tag_ids is not None:  # marks that close nothing: a decoded text has no special tokens
        answer = answer._replace(text=_unmarked(answer.text), reasoning=_unmarked(answer.reasoning))
    return Completion(
        text=answer.text,
        reasoning=answer.reasoning,
        finish_reason=finish_reason,
        complete=answer.complete and finish_reason == "stop",
        prompt_tokens=len(prepared.ids),
        output_tokens=output_tokens,
    )


_MARKS = ("\ud800", "\udfff")
"""Stand for reasoning tags that are special tokens: halves of surrogate pairs, which no decoded text holds, so that
tags that a model merely spells divide nothing."""


def special_tags(tokenizer: Any, tags: tuple[str, str] | None) -> tuple[int, int] | None:
    """The ids of both tags where either is a special token of the tokenizer and both are one token, else None."""
    if tags is None:
        return None
    known = {str(token): index for index, token in tokenizer.added_tokens_decoder.items()}
    if not all(tag in known for tag in tags):
        return None
    special = set(tokenizer.all_special_ids)
    ids = (known[tags[0]], known[tags[1]])
    marked_special = any(tokenizer.added_tokens_decoder[index].special for index in ids)
    return ids if marked_special or special & set(ids) else None


def marked(tokenizer: Any, prepared: Prepared, ids: Sequence[int] | None, ends: Sequence[int]) -> str | None:
    """A reply's text with a mark for each reasoning tag, told by its id; None where the tags are plain text.

    ends: tokens that end an answer, the last one of which is no part of it
    """
    if prepared.tag_ids is None or ids is None:
        return None
    kept = list(ids[:-1] if ids and ids[-1] in ends else ids)
    parts, start = [], 0
    for place, token in enumerate([*kept, None]):
        if token is None or token in prepared.tag_ids:
            parts.append(tokenizer.decode(kept[start:place], skip_special_tokens=True))
            parts.append("" if token is None else _MARKS[prepared.tag_ids.index(token)])
            start = place + 1
    return "".join(parts)


def _unmarked(text: str) -> str:
    return text.replace(_MARKS[0], "").replace(_MARKS[1], "")


class Answer(NamedTuple):
    """A model's text divided into reasoning and answer. ``complete`` is False where the reasoning never ended."""

    reasoning: str
    text: str
    complete: bool


def split_reasoning(text: str, tags: tuple[str, str] | None) -> Answer:
    """Takes every ``<think>...</think>`` out of a text.

    Templates often open the tag in the prompt, so that only the closing one is in the text: then everything up to the
    first closing tag is reasoning. A tag opened and not closed: everything after it is reasoning, incomplete.
    """
    if tags is None:
        return Answer("", text, True)
    opening, closing = tags
    thoughts: list[str] = []
    first_open, first_close = text.find(opening), text.find(closing)
    if first_close != -1 and (first_open == -1 or first_close < first_open):
        thoughts.append(text[:first_close])
        text = text[first_close + len(closing) :]
    while (start := text.find(opening)) != -1:
        end = text.find(closing, start + len(opening))
        if end == -1:
            thoughts.append(text[start + len(opening) :])
            return Answer("\n".join(thoughts).strip(), text[:start].strip(), False)
        thoughts.append(text[start + len(opening) : end])
        text = text[:start] + text[end + len(closing) :]
    return Answer("\n".join(thoughts).strip(), text.lstrip() if thoughts else text, True)
