"""Near-duplicates among 10,000 questions, and the same on 500 as the exhaustive comparison by rouge-score.

    python -m tests.performance.deduplication [QUESTIONS]

QUESTIONS: a file with a question per line; without it, 400 made-up templates with words exchanged. At most 120 seconds
for 10,000 are right; the exhaustive comparison of 500 takes a minute or two.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer

from evaluation.idgen.duplicates import THRESHOLD, near_duplicates

NUMBER, COMPARED, MOST_SECONDS = 10_000, 500, 120


def main() -> None:
    questions = made(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if len(sys.argv) > 1 else templates())
    start = time.perf_counter()
    found = near_duplicates(questions)
    seconds = time.perf_counter() - start
    print(f"{NUMBER} questions: {len(found)} near-duplicates in {seconds:.1f} s (at most {MOST_SECONDS})")

    start = time.perf_counter()
    expected = exhaustive(questions[:COMPARED])
    same = expected == [(one.index, one.of) for one in near_duplicates(questions[:COMPARED])]
    print(f"exhaustive on {COMPARED}: {len(expected)} in {time.perf_counter() - start:.1f} s, same result: {same}")
    if seconds > MOST_SECONDS or not same:
        sys.exit(1)


def made(origins: list[str]) -> list[str]:
    """Questions with 5 to 50% of their words exchanged: as near to each other as grown ones are."""
    draw = random.Random(0)
    vocabulary = [word for text in origins for word in text.split()]
    questions = []
    for _ in range(NUMBER):
        text = draw.choice(origins).split()
        for _ in range(max(1, int(len(text) * draw.choice((0.05, 0.1, 0.2, 0.3, 0.4, 0.5))))):
            text[draw.randrange(len(text))] = draw.choice(vocabulary)
        questions.append(" ".join(text))
    return questions


def templates() -> list[str]:
    """Sentences of 10 to 60 words whose frequencies fall as those of a language do (Zipf)."""
    draw = random.Random(1)
    weights = [1 / rank for rank in range(1, 5_001)]
    return [
        " ".join(f"word{rank}" for rank in draw.choices(range(5_000), weights, k=draw.randint(10, 60)))
        for _ in range(400)
    ]


def exhaustive(questions: list[str]) -> list[tuple[int, int]]:
    scorer = RougeScorer(["rougeL"])
    kept: list[int] = []
    found = []
    for index, question in enumerate(questions):
        near = (other for other in kept if scorer.score(questions[other], question)["rougeL"].fmeasure > THRESHOLD)
        first = next(near, None)
        if first is None:
            kept.append(index)
        else:
            found.append((index, first))
    return found


if __name__ == "__main__":
    main()
