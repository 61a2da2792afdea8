"""Every request that protocols and builders make of scripted models, as lines of text.

``requests.txt`` beside this file holds them: steps make seeds, and prompt, sampling and schema make the keys under
which a ledger knows an answer, so a line that changes is an answer that a finished run asks for again. Write it anew,
where that is meant, with ``python -m tests.evaluation.asking.requests_made``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation import registry
from evaluation.benchmarks import load
from evaluation.items import Item, make_item
from evaluation.kieval.options import OpeningOptions, RoundJudgeOptions
from evaluation.kieval.prefilter import Prefilter
from evaluation.kieval.rejudge import Rejudge
from serving.records import Ask, Completion, Score, canonical_json, derive_seed

FILE = Path(__file__).with_name("requests.txt")
MODELS = ("ant", "bee", "cat")
FREE = (
    "Rating: 7\nChoice: A\nScore: 2\nVerdict: yes\nResponse 1 is better.",
    "I can't tell.",
    "Accuracy: fine. Score: 3\nCoherence: 2\nFactuality: 3\nComprehensiveness: 1\nOverall: fine. Score: 4\nStop: no",
    "accuracy: 3\ncoherence: 3\nfactuality: 3\ncomprehensiveness: 3\noverall: 5",
    "[[9]] [[B]] [[no]] Response 2",
    "Rating: 7 or 8\nChoice: A\nChoice: B\nVerdict: yes\nVerdict: no",
    '{"comment": "good", "rating": 4, "choice": "tie", "score": 1, "verdict": "no"}',
)
WRITTEN = (
    "1. What bends light in a glass?\n2. Why does ice float on water?\n3. How do sails drive a boat?\n4. Who says so?",
    "What is the sum of 3 and {n}?",
    "1. What bends light in a glass?",
    "The answer is {n}.",
    "",
)

CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("exam", "kieval", {"rounds": 3}),
    ("exam", "kieval", {"rounds": 2, "votes": 3, "retries": 1, "comment_length": 24}),
    ("exam", "kieval", {"rounds": 2, "verdict": "free", "overflow": "stop"}),
    ("exam", "mt_bench", {}),
    ("exam", "mt_bench", {"verdict": "free", "temperatures": "category", "reference": "always"}),
    ("exam", "mt_bench", {"evaluator_tokens": 999, "comment_length": 24, "retries": 0}),
    ("exam", "pairwise", {}),
    ("exam", "pairwise", {"verdict": "free"}),
    ("exam", "lm_examiner", {}),
    ("exam", "lm_examiner", {"comment_length": 40, "few_shot": 2, "rounds": 3}),
    ("exam", "lm_examiner", {"verdict": "free", "candidate_format": "plain", "reference": "always"}),
    ("exam", "question_levels", {"pilot": True}),
    ("exam", "probing.calibrate", {}),
    ("exam", "probing.calibrate", {"verdict": "free", "comment_length": 24}),
    ("exam", "idgen", {}),
    ("exam", "idgen", {"verdict": "free", "max_score": 5}),
    ("group", "ranking", {}),
    ("group", "ranking", {"schedule": "all_pairs", "verdict": "free"}),
    ("group", "peer_examination", {"domains": 2, "questions": 2, "cross_judge": True, "own_answers": True}),
    ("group", "style_bias", {"comment_length": 30}),
    ("group", "style_bias", {"verdict": "free"}),
    ("build", "lm_examiner", {"domains": 2, "questions": 4, "check": True}),
    ("build", "probing", {"sets": 1}),
    ("build", "probing", {"sets": 1, "verdict": "free", "on_rejection": "resample"}),
    ("build", "idgen", {"critic": True, "keep": "both"}),
    ("build", "idgen", {"classes": "math", "answerers": 3, "per_seed": 2}),
    ("build", "idgen", {"classes": "classify", "retries": 3}),
    ("rejudge", "rejudge", {"votes": 3}),
    ("rejudge", "rejudge", {"verdict": "free"}),
    ("prefilter", "prefilter", {}),
)


def every_request(folder: Path) -> Iterator[str]:
    """The lines of all cases. folder: for the files that a protocol reads."""
    for kind, name, options in CASES:
        case = f"{kind} {name} {json.dumps(options)}"
        yield f"# {case}"
        yield from requests(kind, name, options, case, folder)


def requests(kind: str, name: str, options: Mapping[str, Any], case: str, folder: Path) -> Iterator[str]:
    """A line per list of demands (how many), per demand (role, max_tokens, temperature, seed, stops, hashes of prompt
    and schema), and one where a record ends."""
    items = load("embedded")[:4] if name == "probing.calibrate" else _items(name in ("mt_bench", "pairwise"))
    lines: list[str] = []
    counter = iter(range(10**6))
    for dialogue in _dialogues(kind, name, options, items, folder):
        try:
            wanted = next(dialogue)
            while True:
                batch = [wanted] if isinstance(wanted, Ask | Score) else list(wanted)
                lines.append(f"asks {len(batch)}")
                replies = []
                for ask in batch:
                    lines.append(_line(ask))
                    replies.append(reply(ask, derive_seed(case, next(counter)), case))
                wanted = dialogue.send(replies[0] if isinstance(wanted, Ask | Score) else replies)
        except StopIteration:
            lines.append("record")
    return iter(lines)


def _dialogues(kind: str, name: str, options: Mapping[str, Any], items: list[Item], folder: Path) -> Iterator[Any]:
    if kind == "group":
        group = registry.build_group(name, options, candidates=MODELS, seed=7)
        return group.dialogues(group.assignments() or items)
    if kind == "build":
        return registry.build_builder(name, options, seed=7).dialogues(items)
    if kind == "prefilter":
        return Prefilter(OpeningOptions(**options), seed=7).dialogues(items)
    if kind == "rejudge":
        return Rejudge(RoundJudgeOptions(**options), seed=7).dialogues(items, [_interview(item) for item in items])
    if name == "pairwise":
        baseline = folder / "baseline.jsonl"
        rows = [{"item_id": i.id, "turns": [{"reply": "A lens."}] * (1 + len(i.followups))} for i in items]
        baseline.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        options = {**options, "baseline": str(baseline)}
    return registry.build(name, options, seed=7).dialogues(items)


def reply(ask: Ask, draw: int, case: str) -> Completion:
    """What the scripted model says: in one case of six nothing that can be read, cut, or without room (whether there
    is any depends on the prompt)."""
    text = _filled(ask.schema, draw) if ask.schema is not None else _text(ask, draw)
    reason: Any = "stop"
    trouble = draw % 24
    if trouble in (0, 1):
        text = "I do not know." if ask.schema is not None else text
    elif trouble == 2:
        text, reason = text[: len(text) // 2], "length"
    if derive_seed(case, ask.role, _prompt(ask)) % 24 == 0:
        text, reason = "", "context"
    return Completion(text=text, finish_reason=reason, prompt_tokens=5 + draw % 7, output_tokens=1 + draw % 5)


def _filled(schema: Mapping[str, Any], draw: int) -> str:
    def value(of: Mapping[str, Any], own: int) -> Any:
        if of["type"] == "object":
            return {name: value(part, derive_seed(own, name)) for name, part in of["properties"].items()}
        if of["type"] == "boolean":
            return own % 5 == 0
        return of["enum"][own % len(of["enum"])] if "enum" in of else ("because", "")[own % 4 == 0]

    return json.dumps(value(schema, draw))


def _text(ask: Ask, draw: int) -> str:
    told = FREE if ask.role in ("evaluator", "examiner", "filter", *MODELS) else WRITTEN
    if ask.role in ("examiner", *MODELS) and "Number them from 1" in str(ask.prompt):
        told = WRITTEN
    return told[draw // 24 % len(told)].replace("{n}", str(draw % 1000))


def _line(ask: Ask) -> str:
    s = ask.sampling
    schema = "free" if ask.schema is None else _hash(canonical_json(ask.schema))
    return (
        f"{ask.role} {s.max_tokens} {s.temperature:g} {s.top_p:g} {s.seed} {len(s.stop)} {schema} {_hash(_prompt(ask))}"
    )


def _prompt(ask: Ask) -> str:
    return ask.prompt if isinstance(ask.prompt, str) else canonical_json([[m.role, m.content] for m in ask.prompt])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _items(talks: bool) -> list[Item]:
    """A choice question and one whose answer is a number, or a conversation of two turns."""
    choice = make_item(
        benchmark="t",
        split="test",
        subject="physics",
        question="What bends light?",
        choices=["A mirror", "A lens", "A wall", "A drum"],
        answer="B",
    )
    talk = make_item(
        benchmark="t",
        split="test",
        subject="math",
        question="What is 3 plus 4?",
        choices=(),
        answer="" if talks else "7",
        form="text" if talks else "number",
        followups=("And if you double it?",) if talks else (),
    )
    return [choice, talk]


def _interview(item: Item) -> dict[str, Any]:
    rounds = [{"question": f"Why {n}?", "reply": f"Because of {n}."} for n in range(3)]
    return {"item_id": item.id, "rounds_allowed": 5, "rounds": rounds, "first_answer": {"text": "B"}}


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        FILE.write_text("\n".join(every_request(Path(made))) + "\n", encoding="utf-8")
