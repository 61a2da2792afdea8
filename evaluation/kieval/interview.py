"""KIEval: an interview in place of a test (Yu et al. 2024, arXiv 2402.15043).

The candidate answers a benchmark item; an interactor, which knows the key, asks follow-up questions about the knowledge
behind it; an evaluator, which doesn't, judges every reply and may end the interview. A model that only recalls the
exam's answers fails the follow-up questions.

Items are run on the leaked half (``kieval``) and on the untouched half (``kieval_untouched``) with the same protocol.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluation.items import Item
from evaluation.kieval import plots as drawn
from evaluation.kieval import prompts as prompts
from evaluation.kieval import published as papers
from evaluation.kieval import shown as said
from evaluation.kieval import tables as tabled
from evaluation.kieval.conversation import Conversation
from evaluation.kieval.judge import judge
from evaluation.kieval.options import KIEvalOptions
from evaluation.kieval.prefilter import Prefilter
from evaluation.kieval.prompts import ask_as_candidate, opening, read_answer
from evaluation.kieval.scores import ablations, paper, released, summarise
from evaluation.kieval.verdict import ASPECTS
from evaluation.protocol import ProtocolOptions, Record
from evaluation.show.table import Column
from evaluation.templates import unquoted
from serving.records import Ask, Completion, Dialogue, Sampling, Yielded


class KIEval:
    """The protocol ``kieval``.

    A record:

    - ``item_id``, ``subject``, ``first_answer`` {text, letter, correct};
    - ``rounds`` [{question, reply, verdict, attempts, votes, overall, dropped_rounds}], where ``dropped_rounds`` says
      per role how many of the oldest rounds its prompt left out; ``rounds_completed``, ``rounds_allowed``;
    - ``stop_reason``: ``rounds`` (all took place), ``context`` (a prompt no longer fitted), the evaluator's reason, or
      ``unstated`` if it gave none; ``stop_round``: index of the first round whose verdict asked to stop, or None;
    - ``scores`` {paper, released}, ``ablations`` {arm: score}, ``aspects`` {aspect: {paper, released, ablations}};
      ``missing_verdicts``;
    - ``dropped_rounds`` (the most that any prompt left out), ``tokens`` {role: {prompt, output, calls}}, as if every
      prompt were answered by itself, whatever prefixes or equal requests the engine shares.
    """

    name: ClassVar[str] = "kieval"
    version: ClassVar[int] = 3
    roles: ClassVar[tuple[str, ...]] = ("candidate", "interactor", "evaluator")
    Options: ClassVar[type[ProtocolOptions]] = KIEvalOptions
    called: ClassVar[str] = "KIEval"
    columns: ClassVar[tuple[Column, ...]] = tabled.COLUMNS
    score_said: ClassVar[str] = "KIEval released, 0 to 1"
    row = staticmethod(tabled.row)
    score = staticmethod(tabled.score)
    counts = staticmethod(tabled.counts)
    notices = staticmethod(tabled.notices)
    shown = staticmethod(said.shown)
    plots = staticmethod(drawn.plots)
    published = staticmethod(papers.published)

    def __init__(self, options: KIEvalOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.interview(item) for item in items)

    def interview(self, item: Item) -> Dialogue[Record]:
        """One item's interview."""
        options = self.options
        conversation = Conversation.about(item, self.roles)
        turns = conversation.turns
        first: Completion = yield opening(item, options)
        conversation.charge("candidate", first)
        conversation.first_answer = first.text.strip()
        stop_reason = "context" if first.finish_reason == "context" else "rounds"

        while stop_reason == "rounds" and len(turns) < options.rounds:
            question = yield from self._question(conversation)
            if question is None:
                stop_reason = "context"
                break
            reply = yield from self._reply(conversation, question)
            if reply is None:
                stop_reason = "context"
                break
            turn = prompts.Round(question=question, reply=reply)
            turns.append(turn)
            fits = yield from judge(conversation, options, seed=self.seed, step=f"kieval/verdict/{len(turns)}")
            if not fits:
                stop_reason = "context"
            elif turn.verdict is not None and turn.verdict.stop and options.early_stop:
                stop_reason = turn.verdict.reason if turn.verdict.reason != "none" else "unstated"

        return self._record(conversation, stop_reason, read_answer(item, first))

    def _question(self, conversation: Conversation) -> Generator[Yielded, Any, str | None]:
        """The interactor's next question; None where it doesn't fit."""

        def make(dropped: int) -> list[Ask]:
            about = (conversation.item, conversation.first_answer, conversation.turns, self.options.quote_limit)
            prompt = prompts.interactor(*about, dropped=dropped)
            return [Ask(role="interactor", prompt=prompt, sampling=Sampling(max_tokens=self.options.interactor_tokens))]

        question = yield from self._say("interactor", make, conversation)
        return None if question is None else unquoted(question)

    def _reply(self, conversation: Conversation, question: str) -> Generator[Yielded, Any, str | None]:
        """The candidate's reply to a question; None where it doesn't fit."""
        turns = [*conversation.turns, prompts.Round(question=question)]

        def make(dropped: int) -> list[Ask]:
            how = self.options.candidate_format
            prompt = prompts.candidate(conversation.item, conversation.first_answer, turns, how, dropped=dropped)
            return [ask_as_candidate(prompt, self.options)]

        return (yield from self._say("candidate", make, conversation))

    def _say(self, role: str, make: Any, conversation: Conversation) -> Generator[Yielded, Any, str | None]:
        droppable = len(conversation.turns) if self.options.overflow == "drop_oldest" else 0
        (completion,) = yield from conversation.ask(role, make, droppable=droppable)
        return None if completion.finish_reason == "context" else completion.text.strip()

    def _record(self, conversation: Conversation, stop_reason: str, first_answer: Mapping[str, Any]) -> Record:
        item, turns = conversation.item, conversation.turns
        verdicts = [turn.verdict for turn in turns]
        stop_round = next((i for i, verdict in enumerate(verdicts) if verdict is not None and verdict.stop), None)
        stopped_early = stop_reason not in ("rounds", "context")
        allowed = self.options.rounds

        def both(scores: list[int | None]) -> dict[str, float | None]:
            return {"paper": paper(scores, rounds=allowed, stopped_early=stopped_early), "released": released(scores)}

        def arms(scores: list[int | None]) -> dict[str, float | None]:
            return ablations(scores, rounds=allowed, stop_round=stop_round, stopped_early=stopped_early)

        overall = [verdict.overall if verdict else None for verdict in verdicts]
        aspects = {name: [verdict.scores[name] if verdict else None for verdict in verdicts] for name in ASPECTS}
        return {
            "item_id": item.id,
            "subject": item.subject,
            "first_answer": first_answer,
            "rounds": [
                {
                    "question": turn.question,
                    "reply": turn.reply,
                    "verdict": turn.verdict.to_json() if turn.verdict else None,
                    "attempts": turn.attempts,
                    "votes": turn.votes,
                    "overall": turn.verdict.overall if turn.verdict else None,
                    "dropped_rounds": turn.dropped,
                }
                for turn in turns
            ],
            "rounds_completed": len(turns),
            "rounds_allowed": allowed,
            "stop_reason": stop_reason,
            "stop_round": stop_round,
            "scores": both(overall),
            "ablations": arms(overall),
            "aspects": {name: {**both(scores), "ablations": arms(scores)} for name, scores in aspects.items()},
            "missing_verdicts": overall.count(None),
            "dropped_rounds": max(conversation.dropped.values()),
            "tokens": conversation.tokens,
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The set's figures (``scores.summarise``)."""
        return summarise(records, roles=self.roles, seed=self.seed)

    def prefilter(self) -> Prefilter:
        """The validity filter with these options: the evaluator takes the exam first."""
        return Prefilter.of(self.options)

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes()
