"""KIEval: an interview in place of a test (Yu et al. 2024, arXiv 2402.15043).

The candidate answers a benchmark item; an interactor, which knows the key, asks follow-up questions about the knowledge
behind it; an evaluator, which doesn't, judges every reply and may end the interview. A model that only recalls the
exam's answers fails the follow-up questions.

Items are run on the leaked half (``kieval``) and on the untouched half (``kieval_untouched``) with the same protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation.extraction import exact_match, extract_choice
from evaluation.items import Item
from evaluation.protocols import kieval_prompts as prompts
from evaluation.protocols.base import ProtocolOptions, Record
from evaluation.protocols.kieval_scores import paper, released
from evaluation.protocols.verdicts import (
    ASPECTS,
    Verdict,
    parse_free,
    parse_structured,
    verdict_schema,
    verdict_tokens,
)
from evaluation.statistics import bootstrap_mean, mean, wilson
from serving.records import Ask, Completion, Dialogue, Prompt, Sampling, Yielded, derive_seed

RETRY_TEMPERATURE = 0.7
FREE_VERDICT_TOKENS = 400


class KIEvalOptions(ProtocolOptions):
    """rounds: n, the follow-up questions allowed (paper: 5)
    retries: further attempts at a verdict that doesn't parse, sampled at temperature 0.7; the first is greedy
    verdict: ``structured`` (JSON enforced by a grammar) or ``free`` (text, read leniently)
    comment_length: characters of each comment in a structured verdict; 24 suits very small models
    interactor_tokens, candidate_tokens, evaluator_tokens: max_tokens per role; the evaluator's default is what the
        longest verdict can need (structured), or 400 (free)
    early_stop: whether the evaluator's wish to stop ends the interview
    candidate_format: ``chat``, or ``plain`` for a candidate without a chat template: a transcript with stop strings
    quote_limit: characters kept of one quoted text in the interactor's and the evaluator's prompts
    """

    rounds: int = Field(default=5, ge=1, le=50)
    retries: int = Field(default=2, ge=0, le=10)
    verdict: Literal["structured", "free"] = "structured"
    comment_length: int = Field(default=80, ge=1, le=2000)
    interactor_tokens: int = Field(default=128, ge=1)
    candidate_tokens: int = Field(default=256, ge=1)
    evaluator_tokens: int | None = Field(default=None, ge=1)
    early_stop: bool = True
    candidate_format: Literal["chat", "plain"] = "chat"
    quote_limit: int = Field(default=4000, ge=100)

    @model_validator(mode="after")
    def _room_for_a_verdict(self) -> KIEvalOptions:
        needed = verdict_tokens(self.comment_length)
        if self.verdict == "structured" and self.evaluator_tokens is not None and self.evaluator_tokens < needed:
            raise ValueError(
                f"evaluator_tokens is {self.evaluator_tokens}, but a verdict with comments of {self.comment_length} "
                f"characters can need {needed}: raise it to that, leave it out, or shorten comment_length"
            )
        return self

    def verdict_tokens(self) -> int:
        """max_tokens of a verdict."""
        needed = verdict_tokens(self.comment_length) if self.verdict == "structured" else FREE_VERDICT_TOKENS
        return self.evaluator_tokens or needed


class KIEval:
    """The protocol ``kieval``.

    A record: ``item_id``, ``subject``, ``first_answer`` {text, letter, correct}, ``rounds`` [{question, reply, verdict,
    attempts, overall}], ``rounds_completed``, ``stop_reason``, ``scores`` {paper, released}, ``aspects`` {aspect:
    {paper, released}}, ``missing_verdicts``. ``stop_reason`` is ``rounds`` (all took place), ``context`` (a prompt no
    longer fitted), the evaluator's reason, or ``unstated`` if it gave none.
    """

    name: ClassVar[str] = "kieval"
    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ("candidate", "interactor", "evaluator")
    Options: ClassVar[type[ProtocolOptions]] = KIEvalOptions

    def __init__(self, options: KIEvalOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.interview(item) for item in items)

    def interview(self, item: Item) -> Dialogue[Record]:
        """One item's interview."""
        options = self.options
        opening: Completion = yield self._ask_candidate(prompts.candidate(item, None, [], options.candidate_format))
        first_answer = opening.text.strip()
        turns: list[prompts.Turn] = []
        attempts: list[int] = []
        stop_reason = "context" if opening.finish_reason == "context" else "rounds"

        while stop_reason == "rounds" and len(turns) < options.rounds:
            question: Completion = yield Ask(
                role="interactor",
                prompt=prompts.interactor(item, first_answer, turns, options.quote_limit),
                sampling=Sampling(max_tokens=options.interactor_tokens),
            )
            if question.finish_reason == "context":
                stop_reason = "context"
                break
            turn = prompts.Turn(question=question.text.strip())
            reply: Completion = yield self._ask_candidate(
                prompts.candidate(item, first_answer, [*turns, turn], options.candidate_format)
            )
            if reply.finish_reason == "context":
                stop_reason = "context"
                break
            turn.reply = reply.text.strip()
            turns.append(turn)
            turn.verdict, tried, fits = yield from self._judge(item, first_answer, turns)
            attempts.append(tried)
            if not fits:
                stop_reason = "context"
            elif turn.verdict is not None and turn.verdict.stop and options.early_stop:
                stop_reason = turn.verdict.reason if turn.verdict.reason != "none" else "unstated"

        return self._record(item, first_answer, turns, attempts, stop_reason)

    def _ask_candidate(self, prompt: Prompt) -> Ask:
        stop = prompts.PLAIN_STOPS if isinstance(prompt, str) else ()
        return Ask(
            role="candidate", prompt=prompt, sampling=Sampling(max_tokens=self.options.candidate_tokens, stop=stop)
        )

    def _judge(
        self, item: Item, first_answer: str, turns: Sequence[prompts.Turn]
    ) -> Generator[Yielded, Any, tuple[Verdict | None, int, bool]]:
        """The verdict on the last turn (None: missing), the attempts made, and whether the prompt fitted."""
        options = self.options
        structured = options.verdict == "structured"
        prompt = prompts.evaluator(
            item,
            first_answer,
            turns,
            options.quote_limit,
            comment_length=options.comment_length if structured else None,
        )
        for attempt in range(options.retries + 1):
            # A seed means nothing at temperature 0; the same value everywhere lets equal requests share an answer.
            seed = derive_seed(self.seed, item.id, f"kieval/verdict/{len(turns)}", attempt) if attempt else 0
            completion: Completion = yield Ask(
                role="evaluator",
                prompt=prompt,
                sampling=Sampling(
                    max_tokens=options.verdict_tokens(), temperature=RETRY_TEMPERATURE if attempt else 0.0, seed=seed
                ),
                schema=verdict_schema(options.comment_length) if structured else None,
            )
            if completion.finish_reason == "context":
                return None, attempt + 1, False
            verdict = (parse_structured if structured else parse_free)(completion.text)
            if verdict is not None:
                return verdict, attempt + 1, True
        return None, options.retries + 1, True

    def _record(
        self, item: Item, first_answer: str, turns: Sequence[prompts.Turn], attempts: Sequence[int], stop_reason: str
    ) -> Record:
        verdicts = [turn.verdict for turn in turns]
        stopped_early = stop_reason not in ("rounds", "context")
        letter = extract_choice(first_answer, item.choices) if item.choices else None
        correct: bool | None
        if item.choices:
            correct = None if letter is None else letter == item.answer
        else:
            correct = exact_match(first_answer, item.answer) if first_answer else None

        def both(scores: list[int | None]) -> dict[str, float | None]:
            return {
                "paper": paper(scores, rounds=self.options.rounds, stopped_early=stopped_early),
                "released": released(scores),
            }

        return {
            "item_id": item.id,
            "subject": item.subject,
            "first_answer": {"text": first_answer, "letter": letter, "correct": correct},
            "rounds": [
                {
                    "question": turn.question,
                    "reply": turn.reply,
                    "verdict": turn.verdict.to_json() if turn.verdict else None,
                    "attempts": tried,
                    "overall": turn.verdict.overall if turn.verdict else None,
                }
                for turn, tried in zip(turns, attempts, strict=True)
            ],
            "rounds_completed": len(turns),
            "stop_reason": stop_reason,
            "scores": both([verdict.overall if verdict else None for verdict in verdicts]),
            "aspects": {name: both([v.scores[name] if v else None for v in verdicts]) for name in ASPECTS},
            "missing_verdicts": sum(verdict is None for verdict in verdicts),
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The set's figures; each mean with a percentile bootstrap interval over dialogues.

        ``score`` and ``score_interval`` are the variant ``released`` (the published figures' scale), ``paper`` beside
        it. Dialogues without a score are counted in ``unscored`` and never count as 0.
        """

        def figure(values: Sequence[float | None], name: str) -> dict[str, Any]:
            known = [value for value in values if value is not None]
            interval = bootstrap_mean(known, seed=derive_seed(self.seed, "kieval", name))
            return {"mean": mean(known), "interval": list(interval) if interval else None, "n": len(known)}

        answers = [record["first_answer"]["correct"] for record in records]
        right = answers.count(True)
        interval = wilson(right, len(records))
        variants = {
            name: figure([record["scores"][name] for record in records], name) for name in ("released", "paper")
        }
        return {
            "n": len(records),
            "score": variants["released"]["mean"],
            "score_interval": variants["released"]["interval"],
            **variants,
            "aspects": {
                aspect: {
                    name: figure([record["aspects"][aspect][name] for record in records], f"{aspect}/{name}")
                    for name in ("released", "paper")
                }
                for aspect in ASPECTS
            },
            "rounds": figure([float(record["rounds_completed"]) for record in records], "rounds"),
            "stop_reasons": dict(sorted(Counter(record["stop_reason"] for record in records).items())),
            "missing_verdicts": sum(record["missing_verdicts"] for record in records),
            "verdicts": sum(record["rounds_completed"] - record["missing_verdicts"] for record in records),
            "unscored": sum(record["scores"]["released"] is None for record in records),
            "empty_questions": sum(not turn["question"] for record in records for turn in record["rounds"]),
            "empty_replies": sum(not turn["reply"] for record in records for turn in record["rounds"]),
            "first_answer": {
                "accuracy": right / len(records) if records else None,
                "interval": list(interval) if interval else None,
                "right": right,
                "wrong": answers.count(False),
                "unparsable": answers.count(None),
            },
        }

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes()
