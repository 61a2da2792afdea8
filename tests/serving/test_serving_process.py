"""An engine process that dies, fails or loses its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.engines import process
from serving.engines.process import ProcessEngine, child_environment
from serving.errors import EngineError
from serving.model.fingerprint import ModelError
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, Sampling, ScoreRequest, TokenScores


def engine_of(spec: ModelSpec) -> ProcessEngine:
    return ProcessEngine(spec, fingerprint="f", mode="lockstep", threads=1)


def ask(prompt: str = "a") -> Request:
    return Request(prompt=prompt, sampling=Sampling(max_tokens=9))


def child_of(engine: ProcessEngine) -> int:
    assert engine._pool is not None
    (pid,) = engine._pool._processes
    return int(pid)


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


@pytest.fixture
def engine(scripted: ModelSpec) -> Iterator[ProcessEngine]:
    engine = engine_of(scripted)
    yield engine
    engine.close()


def test_answers_cross_the_process_boundary(engine: ProcessEngine) -> None:
    assert not engine.started
    first, second = engine.generate([ask("lone \ud800"), ask("b")])
    assert isinstance(first, Completion)
    assert engine.started
    assert [a.text for a in engine.generate([ask("b"), ask("lone \ud800")])] == [second.text, first.text]
    (table,) = engine.score([ScoreRequest(prompt="a b c")])
    assert isinstance(table, TokenScores)
    assert child_of(engine) != os.getpid()


def test_closing_ends_the_process_and_the_engine_can_start_again(engine: ProcessEngine) -> None:
    engine.close()  # before it was started: nothing to do
    engine.generate([ask()])
    first = child_of(engine)
    engine.close()
    assert gone_within(first, 5)
    assert not engine.started
    engine.close()
    engine.generate([ask()])
    assert child_of(engine) != first


def test_a_killed_engine_is_an_error_that_names_the_model(engine: ProcessEngine) -> None:
    answers = engine.generate([ask()])
    os.kill(child_of(engine), signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(EngineError, match=r"scripted engine of model scripted died.*run again to go on"):
        engine.generate([ask()])
    assert time.monotonic() - start < 5
    assert not engine.started
    assert engine.generate([ask()]) == answers


def test_an_engine_killed_during_a_batch_is_an_error_within_seconds() -> None:
    engine = engine_of(ModelSpec(path="slow", engine="scripted"))
    engine.generate([ask("b")])
    pid = child_of(engine)
    code = f"import os, time; time.sleep(0.7); os.kill({pid}, 9)"
    killer = subprocess.Popen([sys.executable, "-c", code])
    start = time.monotonic()
    with pytest.raises(EngineError, match="model slow died"):
        engine._call(time.sleep, 60)
    assert 0.2 < time.monotonic() - start < 6
    killer.wait()
    assert gone_within(pid, 5)


def test_an_error_while_loading_keeps_its_text(tmp_path: Path) -> None:
    engine = engine_of(ModelSpec(path=str(tmp_path / "none"), engine="transformers"))
    with pytest.raises(ModelError, match=r"model folder .*none does not exist; give a folder with config\.json"):
        engine.generate([ask()])
    assert not engine.started


def test_an_error_of_the_engine_keeps_its_text(tmp_path: Path) -> None:
    engine = engine_of(ModelSpec(path="m", engine="scripted", engine_args={"replies": [{"match": "("}]}))
    with pytest.raises(EngineError, match=r"scripted engine of model m failed: .*unterminated subpattern"):
        engine.generate([ask()])
    assert not engine.started


class Unreadable(Exception):
    """Pickles, but can't be read again: its constructor wants two arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


class UnreadableValue(Unreadable, ValueError):
    pass


def test_an_exception_that_cannot_travel_travels_as_its_text() -> None:
    with pytest.raises(RuntimeError, match="Unreadable: this and that"), process._errors_that_travel():
        raise Unreadable("this", "that")
    with pytest.raises(ValueError, match="UnreadableValue: this and that"), process._errors_that_travel():
        raise UnreadableValue("this", "that")
    with pytest.raises(ModelError, match=r"^plain$"), process._errors_that_travel():
        raise ModelError("plain")


PARENT = """
import sys, time
from serving.engines.process import ProcessEngine
from serving.model.spec import ModelSpec
from serving.records import Request, Sampling

def main():
    busy = sys.argv[1] == "busy"
    engine = ProcessEngine(ModelSpec(path="m", engine="scripted"), fingerprint="f", mode="fast")
    engine.generate([Request(prompt="b", sampling=Sampling(max_tokens=9))])
    print(*engine._pool._processes, flush=True)
    if busy:
        engine._call(time.sleep, 60)
    time.sleep(60)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_nothing_remains_when_the_parent_is_killed(state: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, str(script), state], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert alive(child)
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    assert gone_within(child, 5)


def test_a_parent_that_ends_by_itself_leaves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT.replace("time.sleep(60)", "raise SystemExit(3)"), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script), "idle"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 3
    assert gone_within(int(done.stdout), 5)


def test_the_childs_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "7")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    values = child_environment(3)
    assert values["OMP_NUM_THREADS"] == "3"
    assert values["VLLM_CPU_KVCACHE_SPACE"] == "7"
    assert values["HF_HUB_OFFLINE"] == values["HF_DATASETS_OFFLINE"] == values["VLLM_NO_USAGE_STATS"] == "1"
    assert "OMP_NUM_THREADS" not in child_environment(None)
