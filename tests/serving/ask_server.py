"""One question to a served model, in a process of its own: ``python -m tests.serving.ask_server SPEC LEDGER``, the
spec as JSON. Prints the answer, or what the user is told."""

from __future__ import annotations

import sys
from pathlib import Path

from serving.ledger import Ledger
from serving.model.spec import ModelSpec
from serving.records import Request, Sampling
from serving.role_engines import Cast

QUESTION = "Which planet is known as the red one?"


def ask(spec: ModelSpec, ledger: Path) -> str:
    request = Request(prompt=QUESTION, sampling=Sampling(max_tokens=7))
    with Cast({"judge": spec}, ledger=Ledger(ledger), mode="fast") as cast:
        answer = cast.answer("judge", [request])[0]
    return getattr(answer, "text", "")


if __name__ == "__main__":
    try:
        print(ask(ModelSpec.model_validate_json(sys.argv[1]), Path(sys.argv[2])))
    except (ValueError, RuntimeError) as error:
        print(f"{type(error).__name__}: {error}")
