"""Roles, engines and the ledger between them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from serving.ledger import Ledger
from serving.model.spec import ModelSpec
from serving.records import Request, Sampling, ScoreRequest
from serving.role_engines import Cast, Seat, scoring_spec


def ask(prompt: str, **sampling: Any) -> Request:
    return Request(prompt=prompt, sampling=Sampling(max_tokens=9, **sampling))


def cast_of(spy: Any, folder: Path | None = None, mode: Any = "lockstep", **roles: ModelSpec) -> Cast:
    roles = roles or {"candidate": ModelSpec(path="m", engine="scripted")}
    return Cast(roles, ledger=Ledger(folder), mode=mode, make_engine=spy)


@pytest.mark.parametrize("mode", ["lockstep", "fast"])
def test_identical_requests_are_computed_once_and_answered_each(spy: Any, trace: list[Any], mode: str) -> None:
    cast = cast_of(spy, mode=mode)
    answers = cast.answer("candidate", [ask("a"), ask("b"), ask("a"), ask("a", seed=1), ask("a", temperature=0)])
    assert [request.sampling.seed for _, batch in trace for request in batch] == [0, 0, 1]
    assert answers[0] == answers[2] == answers[4]
    assert len({answer.text for answer in answers}) == 3  # type: ignore[union-attr]
    assert cast.answer("candidate", []) == []


def test_answers_are_on_disk_before_they_are_returned(spy: Any, tmp_path: Path) -> None:
    cast = cast_of(spy, tmp_path)
    answers = cast.answer("candidate", [ask("a"), ask("b"), ask("a")])
    reader = cast_of(spy, tmp_path)
    assert len(reader.ledger) == 2
    assert reader.answer("candidate", [ask("a"), ask("b"), ask("a")]) == answers
    usage = reader.usage["candidate"]
    assert (usage.calls, usage.replayed, usage.seconds) == (2, 2, 0.0)
    assert (usage.prompt_tokens, usage.output_tokens) == (2, 10)  # "This is scripted reply 1234abcd."
    assert cast.usage["candidate"].replayed == 0


def test_a_ledger_that_answers_everything_starts_no_engine(spy: Any, tmp_path: Path) -> None:
    cast_of(spy, tmp_path).answer("candidate", [ask("a")])
    started: list[str] = []
    roles = {"candidate": ModelSpec(path="m", engine="scripted")}
    with Cast(roles, ledger=Ledger(tmp_path), mode="lockstep", make_engine=spy, on_start=started.append) as cast:
        cast.answer("candidate", [ask("a")])
        assert started == []
        cast.answer("candidate", [ask("b")])
        cast.answer("candidate", [ask("c")])
        assert started == ["loading m (scripted)"]


def test_roles_of_one_model_share_an_engine(spy: Any) -> None:
    same = ModelSpec(path="m", engine="scripted")
    other = ModelSpec(path="n", engine="scripted")
    cast = cast_of(spy, candidate=same, interactor=same, evaluator=other)
    assert cast.fingerprint("candidate", "generate") == cast.fingerprint("interactor", "generate")
    assert cast.fingerprint("candidate", "score") == cast.fingerprint("interactor", "score")
    assert cast.fingerprint("candidate", "generate") != cast.fingerprint("evaluator", "generate")
    cast.answer("candidate", [ask("a")])
    assert (cast.usage["candidate"].calls, cast.usage["interactor"].calls) == (1, 0)


def test_the_mode_is_part_of_the_fingerprint(spy: Any) -> None:
    prints = {cast_of(spy, mode=mode).fingerprint("candidate", "generate") for mode in ("lockstep", "fast")}
    assert len(prints) == 2


def test_closing_closes_every_engine(spy: Any) -> None:
    made: list[Any] = []

    def noted(*args: Any, **more: Any) -> Any:
        made.append(spy(*args, **more))
        return made[-1]

    a, b = ModelSpec(path="a", engine="scripted"), ModelSpec(path="b", engine="scripted")
    with cast_of(noted, a=a, b=b) as cast:
        cast.answer("a", [ask("x")])
    assert [engine.closed for engine in made] == [1, 1]


def test_scores_go_to_transformers_in_the_score_dtype() -> None:
    spec = ModelSpec(path="m", engine="vllm", dtype="bfloat16", score_dtype="float32", engine_args={"swap_space": 1})
    scoring = scoring_spec(spec)
    assert (scoring.engine, scoring.dtype, scoring.engine_args) == ("transformers", "float32", {})
    plain = ModelSpec(path="m", engine="transformers", engine_args={"attn_implementation": "eager"})
    assert scoring_spec(plain) == plain
    scripted = ModelSpec(path="m", engine="scripted")
    assert scoring_spec(scripted) is scripted


def test_a_missing_model_is_an_error_before_anything_starts(spy: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        cast_of(spy, candidate=ModelSpec(path=str(tmp_path / "none"), engine="transformers"))


def test_an_engine_computes_one_batch_at_a_time(spy: Any) -> None:
    busy, most = 0, 0
    guard = threading.Lock()

    def counting(*args: Any, **more: Any) -> Any:
        engine = spy(*args, **more)
        generate = engine.generate

        def one(requests: Any) -> Any:
            nonlocal busy, most
            with guard:
                busy += 1
                most = max(most, busy)
            threading.Event().wait(0.01)
            with guard:
                busy -= 1
            return generate(requests)

        engine.generate = one
        return engine

    cast = cast_of(counting)
    threads = [threading.Thread(target=cast.answer, args=("candidate", [ask(f"{n}")])) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most == 1
    assert cast.usage["candidate"].calls == 8


# GPUs


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_DEVICE", "cuda:test")


def open_seats(cast: Cast) -> list[str]:
    seats: list[Seat] = list(cast._seats.values())
    return [seat.spec.path for seat in seats if seat.started]


@pytest.mark.usefixtures("on_gpu")
def test_engines_whose_shares_do_not_fit_are_never_open_together(spy: Any) -> None:
    big = {name: ModelSpec(path=name, engine="scripted", engine_args={"replies": []}) for name in "abc"}
    shares = {"a": 0.4, "b": 0.5, "c": 0.9}
    cast = cast_of(spy, **{name: spec.model_copy(update={"memory_share": shares[name]}) for name, spec in big.items()})
    cast.answer("a", [ask("1")])
    cast.answer("b", [ask("1")])
    assert open_seats(cast) == ["a", "b"]
    cast.answer("c", [ask("1")])
    assert open_seats(cast) == ["c"]
    cast.answer("a", [ask("2")])
    assert open_seats(cast) == ["a"]


@pytest.mark.parametrize(
    ("shares", "device", "expected"),
    [((0.4, 0.5), "cuda:test", True), ((0.9, 0.9), "cuda:test", False), ((0.4, 0.5), "cpu", False)],
)
def test_engines_side_by_side(
    spy: Any, monkeypatch: pytest.MonkeyPatch, shares: tuple[float, float], device: str, expected: bool
) -> None:
    monkeypatch.setenv("PROCTOR_DEVICE", device)
    first, second = (ModelSpec(path=p, engine="scripted", memory_share=s) for p, s in zip("ab", shares, strict=True))
    assert cast_of(spy, candidate=first, evaluator=second).side_by_side is expected
    assert not cast_of(spy, candidate=first, evaluator=first).side_by_side, "one engine"


@pytest.mark.usefixtures("on_gpu")
def test_engines_that_take_turns_on_a_gpu_do_not_block_each_other(spy: Any) -> None:
    specs = {name: ModelSpec(path=name, engine="scripted") for name in "abc"}
    cast = cast_of(spy, **specs)

    def turns(role: str) -> None:
        for number in range(30):
            cast.answer(role, [ask(f"{role} {number}")])

    threads = [threading.Thread(target=turns, args=(role,), daemon=True) for role in "abcabc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not [thread for thread in threads if thread.is_alive()], "deadlock"
    assert len(open_seats(cast)) == 1


@pytest.mark.usefixtures("on_gpu")
def test_an_engine_that_can_sleep_is_not_closed(spy: Any) -> None:
    asleep: list[str] = []

    def sleeper(spec: ModelSpec, **more: Any) -> Any:
        engine = spy(spec, **more)
        engine.sleep = lambda: not asleep.append(spec.path) and spec.path == "a"  # type: ignore[func-returns-value]
        return engine

    cast = cast_of(sleeper, **{name: ModelSpec(path=name, engine="scripted") for name in "ab"})
    for role in "aba":
        cast.answer(role, [ask(role + str(len(asleep)))])
    engines = {seat.spec.path: seat.engine for seat in cast._seats.values()}
    assert asleep == ["a", "b"]
    assert (engines["a"].closed, engines["b"].closed) == (0, 1)  # type: ignore[attr-defined]
    assert open_seats(cast) == ["a"]


def test_scores_and_generations_of_one_role(spy: Any, trace: list[Any]) -> None:
    cast = cast_of(spy)
    tables = cast.answer("candidate", [ScoreRequest(prompt="a b c"), ScoreRequest(prompt="a b c")])
    assert tables[0] == tables[1]
    assert [(kind, len(batch)) for kind, batch in trace] == [("score", 1)]
    assert cast.usage["candidate"].prompt_tokens == 2
