"""Many dialogues at once: which batches are asked, in which order, and what happens when something goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from serving.ledger import Ledger
from serving.model.spec import ModelSpec
from serving.records import Ask, Completion, Dialogue, Sampling, Score, TokenScores
from serving.role_engines import Cast
from serving.scheduler import run_dialogues, shard, wave_size

SAMPLING = Sampling(max_tokens=9)
PATIENCE = 30.0


def within(seconds: float, action: Callable[[], Any]) -> Any:
    """The result (or error) of an action in a thread, or a failure if it takes longer than that."""
    outcome: list[Any] = []

    def act() -> None:
        try:
            outcome.append(action())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"nothing happened for {seconds} seconds"
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def interview(item: int) -> Dialogue[dict[str, Any]]:
    """As long as its number says; the answers go into the next question and into the record."""
    answer = yield Ask(role="candidate", prompt=f"item {item}", sampling=SAMPLING)
    said = [answer.text]
    for turn in range(item % 3):
        reply, table = yield [
            Ask(role="examiner", prompt=f"{item}.{turn}: {said[-1]}", sampling=SAMPLING),
            Score(role="candidate", prompt=f"{item}.{turn}", continuation=" yes"),
        ]
        said += [reply.text, str(table.answer_logprob())]
    return {"item": item, "said": said}


def cast_of(spy: Any, folder: Path | None = None, mode: str = "lockstep") -> Cast:
    specs = {
        "candidate": ModelSpec(path="candidate", engine="scripted"),
        "examiner": ModelSpec(path="examiner", engine="scripted"),
    }
    return Cast(specs, ledger=Ledger(folder), mode=mode, make_engine=spy)  # type: ignore[arg-type]


def run(
    spy: Any, items: Sequence[int], *, folder: Path | None = None, mode: str = "lockstep", **more: Any
) -> list[Any]:
    with cast_of(spy, folder, mode) as cast:
        options = {"wave": 4, **more}
        return within(PATIENCE, lambda: run_dialogues([interview(i) for i in items], cast, **options))  # type: ignore[no-any-return]


def prompts(trace: list[tuple[str, list[Any]]]) -> list[tuple[str, ...]]:
    return [(kind, *(request.prompt.partition(":")[0] for request in batch)) for kind, batch in trace]


# waves


@pytest.mark.parametrize(
    ("items", "seqs", "single", "expected"),
    [
        (200, 64, False, 50),  # 4 waves: 50 50 50 50, not 64 64 64 8
        (200, 64, True, 200),  # 4 x 64 = 256 fit
        (257, 64, True, 129),
        (64, 64, False, 64),
        (65, 64, False, 33),
        (1, 64, False, 1),
        (0, 64, False, 1),
        (7, 1, False, 1),
        (7, 3, False, 3),
    ],
)
def test_wave_sizes(items: int, seqs: int, single: bool, expected: int) -> None:
    size = wave_size(items, seqs, single_step=single)
    assert size == expected
    assert size <= seqs * (4 if single else 1)


def test_a_shard_takes_whole_waves() -> None:
    waves = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert list(shard(waves, 0, 3)) == [0, 1, 2, 9]
    assert list(shard(waves, 1, 3)) == [3, 4, 5]
    assert sorted(item for i in range(3) for item in shard(waves, i, 3)) == list(range(10))
    assert list(shard(waves, 0, 1)) == list(range(10))
    assert list(shard(waves, 5, 6)) == []
    for index, count in ((3, 3), (-1, 2)):
        with pytest.raises(ValueError, match=rf"shard {index}/{count}"):
            list(shard(waves, index, count))


# lockstep


def test_the_batches_of_a_wave(spy: Any, trace: list[Any]) -> None:
    run(spy, range(6), wave=3)
    assert prompts(trace) == [
        ("generate", "item 0", "item 1", "item 2"),
        ("score", "1.0", "2.0"),
        ("generate", "1.0", "2.0"),
        ("score", "2.1"),
        ("generate", "2.1"),
        ("generate", "item 3", "item 4", "item 5"),
        ("score", "4.0", "5.0"),
        ("generate", "4.0", "5.0"),
        ("score", "5.1"),
        ("generate", "5.1"),
    ]


def test_records_are_in_the_order_of_the_dialogues_and_equal_those_of_one_at_a_time(spy: Any) -> None:
    together = run(spy, range(10))
    assert [record["item"] for record in together] == list(range(10))
    assert together == [run(spy, [item])[0] for item in range(10)]
    assert [len(record["said"]) for record in together] == [1, 3, 5, 1, 3, 5, 1, 3, 5, 1]


def test_a_run_interrupted_at_any_batch_asks_the_missing_batches_and_no_others(
    spy: Any, trace: list[Any], tmp_path: Path
) -> None:
    whole = run(spy, range(10))
    full = list(trace)
    for stop_at in range(len(full)):
        folder = tmp_path / str(stop_at)
        trace.clear()

        class Interrupted(Exception):
            pass

        def failing(*args: Any, stop_at: int = stop_at, **more: Any) -> Any:
            engine = spy(*args, **more)
            for name in ("generate", "score"):
                method = getattr(engine, name)

                def limited(requests: Any, method: Any = method) -> Any:
                    if len(trace) == stop_at:
                        raise Interrupted
                    return method(requests)

                setattr(engine, name, limited)
            return engine

        with pytest.raises(Interrupted):
            run(failing, range(10), folder=folder)
        assert trace == full[:stop_at]
        trace.clear()
        assert run(spy, range(10), folder=folder) == whole
        assert trace == full[stop_at:]
        trace.clear()
        assert run(spy, range(10), folder=folder) == whole
        assert trace == []


def test_a_batch_that_is_partly_known_is_computed_whole(spy: Any, trace: list[Any], tmp_path: Path) -> None:
    run(spy, [0, 3], folder=tmp_path)
    trace.clear()
    run(spy, [0, 3, 6], folder=tmp_path)
    assert prompts(trace) == [("generate", "item 0", "item 3", "item 6")]
    trace.clear()
    run(spy, [0, 3, 6, 9], folder=tmp_path, mode="fast")
    assert prompts(trace) == [("generate", *(f"item {i}" for i in (0, 3, 6, 9)))], "another mode is another fingerprint"
    trace.clear()
    run(spy, [0, 3, 6, 9, 12], folder=tmp_path, mode="fast")
    assert prompts(trace) == [("generate", "item 12")]


def test_two_waves_in_flight_ask_the_same_batches_and_give_the_same_records(spy: Any, trace: list[Any]) -> None:
    one = run(spy, range(20))
    expected = sorted(trace, key=repr)
    for _ in range(5):
        trace.clear()
        assert run(spy, range(20), waves_in_flight=2) == one
        assert sorted(trace, key=repr) == expected


def test_shards_ask_the_batches_of_the_whole(spy: Any, trace: list[Any]) -> None:
    whole = run(spy, range(10), wave=3)
    full = sorted(trace, key=repr)
    trace.clear()
    waves = [list(range(10))[start : start + 3] for start in range(0, 10, 3)]
    records = [record for index in range(3) for record in run(spy, list(shard(waves, index, 3)), wave=3)]
    assert sorted(trace, key=repr) == full
    assert sorted(records, key=lambda record: record["item"]) == whole


# what a dialogue may yield


def test_a_list_is_answered_in_its_order_whatever_is_in_it(spy: Any) -> None:
    def mixed() -> Dialogue[list[Any]]:
        demands = [
            Score(role="candidate", prompt="a b"),
            Ask(role="examiner", prompt="one", sampling=SAMPLING),
            Ask(role="candidate", prompt="two", sampling=SAMPLING),
            Score(role="examiner", prompt="a b c"),
            Ask(role="examiner", prompt="three", sampling=SAMPLING),
        ]
        answers = yield demands
        alone = []
        for demand in demands:
            alone.append((yield demand))
        return [answers, alone]

    for mode in ("lockstep", "fast"):
        (record,) = within(PATIENCE, lambda mode=mode: run_dialogues([mixed()], cast_of(spy, mode=mode), wave=1))
        answers, alone = record
        assert answers == alone
        assert [type(answer) for answer in answers] == [TokenScores, Completion, Completion, TokenScores, Completion]
        assert len({answer.text for answer in answers if isinstance(answer, Completion)}) == 3


@pytest.mark.parametrize("mode", ["lockstep", "fast"])
def test_empty_yields_and_dialogues_that_ask_nothing(spy: Any, trace: list[Any], mode: str) -> None:
    def silent(item: int) -> Dialogue[Any]:
        first = yield []
        second = yield ()
        if item % 2:
            answer = yield [Ask(role="candidate", prompt=f"{item}", sampling=SAMPLING)]
            return [first, second, len(answer)]
        return [first, second]

    def nothing() -> Dialogue[int]:
        return 7
        yield []

    dialogues: list[Dialogue[Any]] = [silent(0), silent(1), nothing()]
    records = within(PATIENCE, lambda: run_dialogues(dialogues, cast_of(spy, mode=mode), wave=2))
    assert records == [[[], []], [[], [], 1], 7]
    assert len(trace) == 1
    assert within(PATIENCE, lambda: run_dialogues([], cast_of(spy, mode=mode), wave=2)) == []


def test_progress_counts_every_dialogue_once(spy: Any) -> None:
    for mode, flight in (("lockstep", 1), ("lockstep", 2), ("fast", 1)):
        counts: list[int] = []
        run(spy, range(9), mode=mode, waves_in_flight=flight, on_done=counts.append)
        assert sum(counts) == 9
        assert min(counts) >= 0


# fast


@pytest.mark.parametrize("mode", ["fast", "batch-invariant"])
def test_free_flow_gives_the_records_of_lockstep(spy: Any, trace: list[Any], mode: str, tmp_path: Path) -> None:
    expected = run(spy, range(30))
    assert run(spy, range(30), mode=mode, folder=tmp_path) == expected
    trace.clear()
    assert run(spy, range(30), mode=mode, folder=tmp_path) == expected
    assert trace == []


def test_free_flow_lets_a_quick_dialogue_overtake(spy: Any, trace: list[Any]) -> None:
    gate = threading.Event()

    def slow_examiner(spec: ModelSpec, **more: Any) -> Any:
        engine = spy(spec, **more)
        if spec.path == "examiner":
            generate = engine.generate
            engine.generate = lambda requests: (gate.wait(PATIENCE), generate(requests))[1]
        return engine

    def chatty() -> Dialogue[str]:
        for turn in range(5):
            yield Ask(role="candidate", prompt=f"chatty {turn}", sampling=SAMPLING)
        gate.set()
        return "done"

    def waiting() -> Dialogue[str]:
        yield Ask(role="examiner", prompt="slow", sampling=SAMPLING)
        return "late"

    cast = cast_of(slow_examiner, mode="fast")
    assert within(PATIENCE, lambda: run_dialogues([waiting(), chatty()], cast, wave=9)) == ["late", "done"]


# failures

MODES = [("lockstep", 1), ("lockstep", 2), ("fast", 1)]


class Broken(Exception):
    pass


def faulty(item: int) -> Dialogue[int]:
    yield Ask(role="candidate", prompt=f"{item}", sampling=SAMPLING)
    if item == 5:
        raise Broken("item 5")
    yield Ask(role="examiner", prompt=f"{item}", sampling=SAMPLING)
    return item


@pytest.mark.parametrize(("mode", "flight"), MODES)
def test_an_error_in_a_dialogue_comes_out(spy: Any, mode: str, flight: int, tmp_path: Path) -> None:
    def go() -> Any:
        with cast_of(spy, tmp_path, mode) as cast:
            return run_dialogues([faulty(i) for i in range(8)], cast, wave=2, waves_in_flight=flight)

    with pytest.raises(Broken, match="item 5"):
        within(PATIENCE, go)


@pytest.mark.parametrize(("mode", "flight"), MODES)
@pytest.mark.parametrize("error", [Broken("engine"), ValueError("bad"), KeyboardInterrupt()])
def test_an_error_of_an_engine_comes_out(spy: Any, mode: str, flight: int, error: BaseException) -> None:
    def failing(spec: ModelSpec, **more: Any) -> Any:
        engine = spy(spec, **more)
        if spec.path == "examiner":

            def fail(requests: Any) -> Any:
                raise error

            engine.generate = fail
        return engine

    with pytest.raises(type(error)):
        run(failing, range(12), mode=mode, waves_in_flight=flight)


@pytest.mark.parametrize(("mode", "flight"), MODES)
def test_too_few_answers_are_an_error(spy: Any, mode: str, flight: int) -> None:
    def forgetful(spec: ModelSpec, **more: Any) -> Any:
        engine = spy(spec, **more)
        generate = engine.generate
        engine.generate = lambda requests: generate(requests)[1:]
        return engine

    with pytest.raises(RuntimeError, match=r"gave 3 answers to 4 requests|gave 11 answers to 12"):
        run(forgetful, range(12), mode=mode, waves_in_flight=flight)


@pytest.mark.parametrize(("mode", "flight"), MODES)
def test_an_unknown_role_is_named(spy: Any, mode: str, flight: int) -> None:
    def lost() -> Dialogue[None]:
        yield Ask(role="jury", prompt="x", sampling=SAMPLING)

    dialogues = [lost() for _ in range(3)]
    with pytest.raises(ValueError, match="no model plays the role 'jury'; the roles here are: candidate, examiner"):
        within(PATIENCE, lambda: run_dialogues(dialogues, cast_of(spy, mode=mode), wave=1, waves_in_flight=flight))


def slowly(spy: Any, seconds: float) -> Any:
    def make(spec: ModelSpec, **more: Any) -> Any:
        engine = spy(spec, **more)
        generate = engine.generate

        def slow(requests: Any) -> Any:
            time.sleep(seconds)
            return generate(requests)

        engine.generate = slow
        return engine

    return make


def test_when_a_wave_fails_the_other_ends_with_its_batch(spy: Any, trace: list[Any]) -> None:
    def long(item: int) -> Dialogue[None]:
        for turn in range(1000):
            yield Ask(role="candidate", prompt=f"{item} {turn}", sampling=SAMPLING)

    def short() -> Dialogue[None]:
        yield Ask(role="examiner", prompt="x", sampling=SAMPLING)
        raise Broken("short")

    dialogues: list[Dialogue[None]] = [long(0), short(), long(1)]
    with pytest.raises(Broken, match="short"):
        within(PATIENCE, lambda: run_dialogues(dialogues, cast_of(slowly(spy, 0.02)), wave=1, waves_in_flight=2))
    assert len(trace) < 100
    asked = len(trace)
    time.sleep(0.1)
    assert len(trace) == asked


def test_after_a_failure_in_free_flow_no_engine_is_asked_again(spy: Any, trace: list[Any]) -> None:
    """A worker that went on would start the engine that the cast has just closed."""
    gate = threading.Event()

    def busy_examiner(spec: ModelSpec, **more: Any) -> Any:
        engine = spy(spec, **more)
        if spec.path == "examiner":
            generate = engine.generate
            engine.generate = lambda requests: (generate(requests), gate.wait(PATIENCE))[0]
        return engine

    def asks(role: str, *then: str) -> Dialogue[None]:
        yield Ask(role=role, prompt=f"{role} first", sampling=SAMPLING)
        for prompt in then:
            yield Ask(role="examiner", prompt=prompt, sampling=SAMPLING)
        if not then and role == "candidate":
            raise Broken("now")

    dialogues = [asks("examiner"), asks("candidate", "waits in the inbox"), asks("candidate")]
    before = threading.active_count()
    with pytest.raises(Broken), cast_of(busy_examiner, mode="fast") as cast:
        within(PATIENCE, lambda: run_dialogues(dialogues, cast, wave=9))
    gate.set()
    end = time.monotonic() + PATIENCE
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before, "a worker is still waiting"
    assert "waits in the inbox" not in [request.prompt for _, batch in trace for request in batch]
