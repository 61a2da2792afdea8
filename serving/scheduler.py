"""Drives many dialogues at once: gathers what they ask, sends each engine one batch, feeds the answers back.

*lockstep*: dialogues advance in waves cut from the frozen item order. A batch is a pure function of the configuration
(wave w, step s, role r), never of timing; so an interrupted run that is repeated asks the very same batches, and the
ledger answers those that were finished. Two waves may be in flight, each on its own thread: an engine still computes
one wave's batch at a time, so their composition does not change.

*fast* and *batch-invariant*: every engine takes whatever is waiting for it whenever it is free.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple, TypeVar

from serving.records import Ask, Demand, Dialogue, Score, Yielded
from serving.role_engines import Cast

RecordT = TypeVar("RecordT")
Done = Callable[[int], None]


class Stream(NamedTuple):
    """What goes to one engine together: a role and the kind of demand."""

    role: str
    kind: str


def wave_size(items: int, max_num_seqs: int, *, single_step: bool) -> int:
    """Items per wave: resolved once, before the run, from the configuration alone.

    Dialogues fill the engine (max_num_seqs), in waves of equal size; work of a single step takes 4 times as many, since
    the engine refills inside a batch.
    """
    if items < 1:
        return 1
    largest = max_num_seqs * (4 if single_step else 1)
    waves = -(-items // largest)
    return -(-items // waves)


def run_dialogues(
    dialogues: Iterable[Dialogue[RecordT]],
    cast: Cast,
    *,
    wave: int,
    waves_in_flight: int = 1,
    on_done: Done = lambda count: None,
) -> list[RecordT]:
    """Runs all dialogues to their records, in order.

    wave: dialogues per wave (lockstep)
    on_done: called with the number of newly finished dialogues, from any thread
    """
    everything = list(dialogues)
    if cast.mode != "lockstep":
        return _free_flow(everything, cast, on_done)
    waves = [everything[start : start + wave] for start in range(0, len(everything), wave)]
    if waves_in_flight < 2 or len(waves) < 2:
        return [record for part in waves for record in _lockstep(part, cast, on_done)]
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=waves_in_flight, thread_name_prefix="wave") as pool:
        futures = [pool.submit(_lockstep, part, cast, on_done, stop) for part in waves]
        try:
            for future in as_completed(futures):  # the first failure counts, whichever wave it is in
                future.result()
            return [record for future in futures for record in future.result()]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Running:
    """A dialogue in progress: its generator, what it waits for, and its record once it has returned."""

    def __init__(self, dialogue: Dialogue[Any]) -> None:
        self.dialogue = dialogue
        self.record: Any = None
        self.finished = False
        self.demands: list[Demand] = []
        self.answers: list[Any] = []
        self.missing = 0
        self._single = False
        self._step(lambda: next(dialogue))

    def feed(self) -> None:
        """Sends the gathered answers and takes the next demand."""
        value = self.answers[0] if self._single else list(self.answers)
        self._step(lambda: self.dialogue.send(value))

    def _step(self, advance: Callable[[], Yielded]) -> None:
        try:
            wanted = advance()
            while not isinstance(wanted, Ask | Score) and not wanted:
                wanted = self.dialogue.send([])
        except StopIteration as stop:
            self.record, self.finished, self.demands = stop.value, True, []
            return
        self._single = isinstance(wanted, Ask | Score)
        self.demands = [wanted] if isinstance(wanted, Ask | Score) else list(wanted)
        self.answers = [None] * len(self.demands)
        self.missing = len(self.demands)


def _stream(demand: Demand) -> Stream:
    return Stream(demand.role, "generate" if isinstance(demand, Ask) else "score")


def _lockstep(
    wave: Sequence[Dialogue[RecordT]], cast: Cast, on_done: Done, stop: threading.Event | None = None
) -> list[RecordT]:
    """One wave to its end, or, once ``stop`` is set because another wave failed, to the end of its batch."""
    running = [_Running(dialogue) for dialogue in wave]
    finished = sum(r.finished for r in running)
    on_done(finished)
    while active := [r for r in running if not r.finished]:
        batches: dict[Stream, list[tuple[_Running, int]]] = {}
        for r in active:
            for position, demand in enumerate(r.demands):
                batches.setdefault(_stream(demand), []).append((r, position))
        for stream in sorted(batches):
            if stop is not None and stop.is_set():
                raise CancelledError
            places = batches[stream]
            answers = cast.answer(stream.role, [r.demands[position].request() for r, position in places])  # type: ignore[arg-type]
            for (r, position), answer in zip(places, answers, strict=True):
                r.answers[position] = answer
        for r in active:
            r.feed()
        now = sum(r.finished for r in running)
        on_done(now - finished)
        finished = now
    return [r.record for r in running]


def _free_flow(dialogues: Sequence[Dialogue[RecordT]], cast: Cast, on_done: Done) -> list[RecordT]:
    """One worker thread per stream; the main thread advances dialogues as their answers come in."""
    running = [_Running(dialogue) for dialogue in dialogues]
    inboxes: dict[Stream, queue.SimpleQueue[tuple[int, int] | None]] = {}
    answered: queue.SimpleQueue[list[tuple[int, int, Any]] | BaseException] = queue.SimpleQueue()
    workers: list[threading.Thread] = []
    over = threading.Event()

    def work(stream: Stream) -> None:
        inbox = inboxes[stream]
        while (first := inbox.get()) is not None:
            places = [first]
            while not inbox.empty():
                place = inbox.get()
                if place is None:
                    break
                places.append(place)
            if over.is_set():  # another worker or a dialogue failed: start no engine after the cast has closed
                return
            try:
                requests = [running[d].demands[position].request() for d, position in places]
                answers = cast.answer(stream.role, requests)  # type: ignore[arg-type]
                answered.put([(d, position, answer) for (d, position), answer in zip(places, answers, strict=True)])
            except BaseException as error:  # handed to the main thread
                answered.put(error)
                return

    def post(index: int) -> None:
        for position, demand in enumerate(running[index].demands):
            stream = _stream(demand)
            if stream not in inboxes:
                inboxes[stream] = queue.SimpleQueue()
                workers.append(threading.Thread(target=work, args=(stream,), daemon=True))
                workers[-1].start()
            inboxes[stream].put((index, position))

    on_done(sum(r.finished for r in running))
    open_count = sum(not r.finished for r in running)
    for index, r in enumerate(running):
        if not r.finished:
            post(index)
    try:
        while open_count:
            batch = answered.get()
            if isinstance(batch, BaseException):
                raise batch
            for index, position, answer in batch:
                r = running[index]
                r.answers[position] = answer
                r.missing -= 1
                if r.missing == 0:
                    r.feed()
                    if r.finished:
                        open_count -= 1
                        on_done(1)
                    else:
                        post(index)
    finally:
        over.set()
        for inbox in inboxes.values():
            inbox.put(None)
    return [r.record for r in running]


def shard(waves: Sequence[Sequence[Any]], index: int, count: int) -> Iterator[Any]:
    """Items of shard ``index`` of ``count``: whole waves, so that batches are those of an unsharded run."""
    if not 0 <= index < count:
        raise ValueError(f"shard {index}/{count}: the index must lie in 0..{count - 1}")
    for number, part in enumerate(waves):
        if number % count == index:
            yield from part
