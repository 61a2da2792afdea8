"""An examiner writes its questions about one domain, answers them, and says what each demands."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from evaluation.asking.form import one_word
from evaluation.asking.until_read import Reading, ask_until_read, sampling
from evaluation.lm_examiner import levels, prompts
from evaluation.lm_examiner.questions import find_questions, sift
from evaluation.lm_examiner.taxonomy import Domain
from evaluation.templates import well_formed
from serving.records import Ask, Completion, Sampling, Yielded

QUESTION_TOKENS: Final = 48
"""max_tokens per question that is asked for."""
CHECK_FORM: Final = one_word("verdict", ("right", "wrong"), max_tokens=24)


def write_questions(
    role: str, domain: Domain, n: int, *, retries: int, temperature: float, seed: int, hard: bool = False
) -> Generator[Yielded, Any, dict[str, Any]]:
    """``n`` valid questions, or as many as the examiner came up with in 1 + ``retries`` attempts.

    Returns ``questions`` [text], ``attempts`` [{asked, found, kept, refused {reason: count}, refused_lines (at most 5),
    numbered, cut}], ``shortfall``. What is missing is asked for again with another seed.
    """
    kept: list[str] = []
    attempts: list[dict[str, Any]] = []
    for attempt in range(retries + 1):
        missing = n - len(kept)
        if not missing:
            break
        completion: Completion = yield Ask(
            role=role,
            prompt=prompts.questions(domain, missing, hard=hard, before=kept),
            sampling=sampling(QUESTION_TOKENS * missing, temperature, seed, domain.id, "questions", attempt),
        )
        cut = completion.finish_reason == "length"
        found = find_questions(completion.text, cut=cut)
        sifted = sift(found, wanted=missing, before=kept)
        kept += sifted.kept
        attempts.append(
            {
                "asked": missing,
                "found": len(found),
                "kept": len(sifted.kept),
                "refused": sifted.counts(),
                "refused_lines": [line for lines in sifted.refused.values() for line in lines][:5],
                "numbered": sifted.numbered,
                "cut": cut,
            }
        )
    return {"questions": kept, "attempts": attempts, "shortfall": n - len(kept)}


def answer_own(
    role: str, questions: Sequence[str], *, simple: int, max_tokens: int
) -> Generator[Yielded, Any, list[str]]:
    """The examiner's answers, greedy; "" where it gave none. The first ``simple`` of them are to be short."""
    completions: list[Completion] = yield [
        Ask(
            role=role,
            prompt=prompts.reference(question, short=index < simple),
            sampling=Sampling(max_tokens=max_tokens),
        )
        for index, question in enumerate(questions)
    ]
    return [well_formed(completion.text).strip() for completion in completions]


def classify(
    role: str, questions: Sequence[str], *, retries: int, seed: int, item_id: str
) -> Generator[Yielded, Any, list[Reading[str]]]:
    """Each question's level."""
    return (
        yield from ask_until_read(
            role,
            [prompts.level(question) for question in questions],
            [f"level/{number}" for number in range(len(questions))],
            levels.LEVEL_FORM,
            retries=retries,
            seed=seed,
            item_id=item_id,
        )
    )


def check_answers(
    role: str, pairs: Sequence[tuple[str, str]], *, retries: int, seed: int, item_id: str, limit: int
) -> Generator[Yielded, Any, list[Reading[str]]]:
    """``right`` or ``wrong`` for each (question, answer)."""
    return (
        yield from ask_until_read(
            role,
            [prompts.check(question, answer, limit=limit) for question, answer in pairs],
            [f"check/{number}" for number in range(len(pairs))],
            CHECK_FORM,
            retries=retries,
            seed=seed,
            item_id=item_id,
        )
    )
