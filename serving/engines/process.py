"""An engine in its own spawned process.

That pins its GPUs, returns its memory when it closes, turns a crash into an error that names the model, and lets two
models work at once. Loading is the first *task* of the process, for an error in a pool's initializer loses its text.
The child watches its parent's sentinel and ends with it, so nothing remains after a stage is killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from serving.engines.base import Backend, load_backend
from serving.errors import EngineError
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, ScoreRequest, TokenScores

ResultT = TypeVar("ResultT")

_backend: Backend | None = None


class ProcessEngine:
    """A model in a child process, started at the first request.

    threads: OMP threads of the child on a CPU (None: the libraries' own choice)
    adapters: LoRA folders that ``generate_with`` may name (vllm)
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        fingerprint: str,
        mode: str,
        threads: int | None = None,
        adapters: Sequence[str] = (),
    ) -> None:
        self.spec = spec
        self.adapters = tuple(adapters)
        self.fingerprint = fingerprint
        self.mode = mode
        self._environment = child_environment(threads)
        self._pool: ProcessPoolExecutor | None = None
        self._asleep = False
        self.load_seconds = 0.0

    @property
    def started(self) -> bool:
        return self._pool is not None

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return self._call(_generate, list(requests))

    def generate_with(self, adapters: Sequence[str | None], requests: Sequence[Request]) -> list[Completion]:
        """Each request by the base (None) or with its adapter; order kept."""
        return self._call(_generate_with, (list(adapters), list(requests)))

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        return self._call(_score, list(requests))

    def close(self) -> None:
        """Ends the child process; its memory returns to the system."""
        pool, self._pool, self._asleep = self._pool, None, False
        if pool is None:
            return
        processes = list((getattr(pool, "_processes", None) or {}).values())
        with contextlib.suppress(Exception):
            pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.join(timeout=10)
            if process.is_alive():
                process.kill()

    def sleep(self) -> bool:
        """Frees the GPU but keeps the process and, in the machine's memory, the weights; False if it can't.

        For vLLM engines whose ``engine_args`` say ``enable_sleep_mode``. The next call wakes it up.
        """
        if self._pool is None or self.spec.engine != "vllm" or not self.spec.engine_args.get("enable_sleep_mode"):
            return False
        self._call(_sleep, None)
        self._asleep = True
        return True

    def _call(self, function: Callable[[Any], ResultT], argument: Any) -> ResultT:
        try:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(max_workers=1, mp_context=context, initializer=end_with_parent)
                start = time.perf_counter()
                self._pool.submit(_load, self.spec, self.mode, self.adapters, self._environment).result()
                self.load_seconds += time.perf_counter() - start
            if self._asleep:
                self._asleep = False
                self._pool.submit(_wake, None).result()
            return self._pool.submit(function, argument).result()
        except BrokenProcessPool:
            self.close()
            raise EngineError(
                f"the {self.spec.engine} engine of model {self.spec.path} died (killed, out of memory, or a crash in "
                "native code); the log above it says more. Answers so far are in the ledger: run again to go on"
            ) from None
        except ValueError:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise EngineError(f"the {self.spec.engine} engine of model {self.spec.path} failed: {error}") from error


def child_environment(threads: int | None) -> dict[str, str]:
    """Variables an engine process needs before it imports anything heavy."""
    values = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "true",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DO_NOT_TRACK": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    own = (("VLLM_LOGGING_LEVEL", "WARNING"), ("VLLM_CPU_KVCACHE_SPACE", "2"), ("VLLM_HOST_IP", "127.0.0.1"))
    for name, value in own:
        values[name] = os.environ.get(name, value)
    if threads is not None:
        values["OMP_NUM_THREADS"] = str(threads)
    return values


def end_with_parent() -> None:
    """Ends this process as soon as its parent is gone, whatever the main thread is doing.

    SLURM's warning may reach all processes of a job; it is the parent that acts on it.
    (The kernel's death signal would not do: it comes when the *thread* that started the child ends.)
    """
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(70)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _load(spec: ModelSpec, mode: str, adapters: tuple[str, ...], environment: dict[str, str]) -> None:
    global _backend
    os.environ.update(environment)
    with _errors_that_travel():
        _backend = load_backend(spec, mode=mode, adapters=adapters)


def _generate(requests: list[Request]) -> list[Completion]:
    assert _backend is not None
    with _errors_that_travel():
        return _backend.generate(requests)


def _generate_with(batch: tuple[list[str | None], list[Request]]) -> list[Completion]:
    backend: Any = _backend
    with _errors_that_travel():
        answers: list[Completion] = backend.generate_with(*batch)
        return answers


def _sleep(_: None) -> None:
    backend: Any = _backend
    with _errors_that_travel():
        backend.sleep()


def _wake(_: None) -> None:
    backend: Any = _backend
    with _errors_that_travel():
        backend.wake_up()


def _score(requests: list[ScoreRequest]) -> list[TokenScores]:
    assert _backend is not None
    with _errors_that_travel():
        return _backend.score(requests)


@contextlib.contextmanager
def _errors_that_travel() -> Iterator[None]:
    """An exception that can't be pickled and read again would look like a crash to the parent and lose its text."""
    try:
        yield
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
        except Exception:
            kind = ValueError if isinstance(error, ValueError) else RuntimeError
            raise kind(f"{type(error).__name__}: {error}") from None
        raise
