"""A model on a vLLM server that ``proctor serve`` started: one examiner for many jobs.

Prompts are rendered here, token ids are sent. A server that is away is waited for, with growing pauses, for as long as
the spec's ``patience``; then the stage ends resumable. What it may be and where it may be: see ``serving/endpoint.py``;
that it is ours, every connection proves before anything is asked over it: ``serving/client.py``.
"""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

from serving.client import UNIX, Client, Refused
from serving.endpoint import Endpoint, check_not_failed, key_file, read_endpoint, read_key, safe_address
from serving.engines.common import Prepared, completion, context_length, end_ids, load_tokenizer, marked, prepare
from serving.errors import EngineError, ServerGone
from serving.model.adapters import limits
from serving.model.fingerprint import ModelError, fingerprint, resolve_model
from serving.model.spec import ModelSpec
from serving.proof import Unproven
from serving.records import Completion, Request, ScoreRequest, TokenScores
from serving.rendering import Rendered, last_tokens, render_with_continuation

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds between tries: doubled from the first to the longest, and up to a quarter more, by chance."""


class Link(NamedTuple):
    """A checked connection. endpoint, key: what it was made from"""

    client: Client
    endpoint: Endpoint
    key: str


class Away(Exception):
    """The server does not answer now; it may later."""


class ServerEngine:
    def __init__(self, spec: ModelSpec, *, fingerprint: str, mode: str, threads: int | None = None) -> None:
        self.fingerprint = fingerprint
        self._spec, self._mode = spec, mode
        folder = resolve_model(spec)
        self._max_length = context_length(spec, folder)
        self._folder = folder
        self._tokenizer: Any = None
        self._end_ids: list[int] = []
        self._link: Link | None = None
        self._linking = threading.Lock()
        self._closed = threading.Event()

    @staticmethod
    def file(spec: ModelSpec) -> Path:
        if spec.endpoint is None:
            raise ModelError(
                f"model {spec.path} has engine: server, but no endpoint: start 'proctor serve MODEL --run RUN' and "
                "give the file that it writes (in an experiment's run folder it is found by itself)"
            )
        return Path(spec.endpoint).expanduser()

    @staticmethod
    def fingerprint_of(spec: ModelSpec, mode: str, *, on_wait: Callable[[str], None] = lambda note: None) -> str:
        """The fingerprint that the server's answers stand under; waits for the endpoint file.

        ModelError if the file names another one: the server's model, template or arguments are not the spec's.
        """
        path = ServerEngine.file(spec)
        until = time.monotonic() + spec.patience
        while (endpoint := read_endpoint(path)) is None:
            if time.monotonic() >= until:
                raise ServerGone(
                    f"{path} does not exist after {spec.patience:g} s: start 'proctor serve', then run the same again"
                )
            check_not_failed(spec, path)
            on_wait(f"waiting for {path.name}")
            time.sleep(min(2.0, max(0.05, spec.patience / 20)))
        return check_fingerprint(spec, mode, endpoint, path)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self._prepare_tokenizer()
        prepared = prepare(self._spec, self._tokenizer, self._max_length, requests)
        return self._each(lambda pair: self._answer(*pair), list(zip(requests, prepared, strict=True)))

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        """Log-probabilities only. ModelError where moments are asked for, or an adapter is to score."""
        if any(request.moments for request in requests):
            raise ModelError("a server gives log-probabilities only; moments need a model with engine: transformers")
        if self._spec.adapter:
            raise ModelError("a server can't score with an adapter; give the model engine: transformers")
        self._prepare_tokenizer()
        return self._each(self._table, list(requests))

    def close(self) -> None:
        """Ends waiting; the server goes on for others."""
        self._closed.set()
        link, self._link = self._link, None
        if link is not None:
            link.client.close()
        self._closed = threading.Event()

    def _prepare_tokenizer(self) -> None:
        if self._tokenizer is None:
            self._tokenizer = load_tokenizer(self._spec, self._folder)
            self._end_ids = end_ids(self._folder, self._tokenizer)

    def _each(self, work: Callable[[Any], Any], rows: list[Any]) -> list[Any]:
        """Up to ``max_num_seqs`` requests at once; the first failure ends the others' waiting."""
        if not rows:
            return []
        with ThreadPoolExecutor(max_workers=min(len(rows), self._spec.max_num_seqs)) as pool:
            futures = [pool.submit(work, row) for row in rows]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self._closed.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                self._closed = threading.Event()

    def _answer(self, request: Request, ready: Prepared) -> Completion:
        if ready.room == 0:
            return completion(self._spec, request, ready, "", "context", 0)
        sampling = request.sampling
        answer = self._ask(
            prompt=list(ready.ids),
            max_tokens=ready.room,
            temperature=sampling.temperature,
            top_p=sampling.top_p if sampling.temperature > 0 else 1.0,
            seed=sampling.seed if sampling.temperature > 0 else None,
            stop=list(ready.stop) or None,
            stop_token_ids=self._end_ids,
            **({"return_token_ids": True} if ready.tag_ids is not None else {}),
            **({"structured_outputs": {"json": request.schema}} if request.schema else {}),
        )
        choice = answer["choices"][0]
        reason: Literal["stop", "length"] = "stop" if choice["finish_reason"] == "stop" else "length"
        tokens = int(answer["usage"]["completion_tokens"])
        said = choice.get("token_ids") if ready.tag_ids is not None else None
        if ready.tag_ids is not None and said is None:
            raise EngineError(
                f"the server of {self._spec.path} sends no token ids, by which this model's reasoning tags "
                f"({', '.join(self._spec.reasoning_tags or ())}) are told: serve it with a newer vLLM"
            )
        text = marked(self._tokenizer, ready, said, self._end_ids) or choice["text"]
        return completion(self._spec, request, ready, text, reason, tokens)

    def _table(self, request: ScoreRequest) -> TokenScores:
        bos = request.bos if request.bos != "model" else self._spec.bos
        text: Rendered = render_with_continuation(self._tokenizer, request.prompt, request.continuation, bos=bos)
        kept, cut = last_tokens(text, self._max_length - 1)
        ids, segments = kept.ids, kept.segments
        if len(ids) < 2:
            return TokenScores(ids=(), logprobs=(), segments=(), dropped=cut)
        answer = self._ask(prompt=list(ids), max_tokens=1, temperature=0.0, prompt_logprobs=0)
        entries = answer["choices"][0]["prompt_logprobs"]
        keep = [i for i in range(1, len(ids)) if not request.answer_only or segments[i] == "answer"]
        found = [entries[i][str(ids[i])] for i in keep]  # by token id: several tokens may be spelled alike
        return TokenScores(
            ids=tuple(ids[i] for i in keep),
            logprobs=tuple(float(row["logprob"]) for row in found),
            segments=tuple(segments[i] for i in keep),
            ranks=tuple(int(row["rank"]) - 1 for row in found),
            greedy=tuple(int(row["rank"]) == 1 for row in found),
            dropped=cut,
            asked_tokens=len(ids) - 1,
            computed_tokens=len(ids) - 1,
        )

    def _ask(self, **arguments: Any) -> dict[str, Any]:
        """One request, tried until it is answered. ServerGone once the patience is at its end."""
        closed = self._closed
        until, pause = time.monotonic() + self._spec.patience, FIRST_PAUSE
        while True:
            link = None
            try:
                link = self._connected()
                return link.client.ask("/completions", {"model": self.fingerprint, **arguments})
            except (OSError, http.client.HTTPException, Away) as error:
                trouble: Exception = error
            except Unproven as error:
                if not self._renewed(link):
                    raise EngineError(
                        f"what answers at the address in {self.file(self._spec)} is not the server of "
                        f"{self._spec.path}: {error}. Nothing was sent to it. Another user's program may have taken "
                        "the server's place; start 'proctor serve' again"
                    ) from error
                trouble = error
            except Refused as error:
                if error.status == 404:
                    raise EngineError(self._stranger()) from error
                if error.status != 429 and error.status < 500:
                    raise EngineError(f"the server of {self._spec.path} refuses a request: {error}") from error
                trouble = error
            self._link = None
            if time.monotonic() >= until:
                raise ServerGone(
                    f"the server of {self._spec.path} was not there for {self._spec.patience:g} s ({trouble}). Answers "
                    "so far are in the ledger: start 'proctor serve' again and run the same command"
                ) from trouble
            if closed.wait(min(pause * (1 + random.random() / 4), max(0.0, until - time.monotonic()))):  # noqa: S311
                raise EngineError("another request to the server failed") from trouble
            pause = min(2 * pause, LONGEST_PAUSE)

    def _connected(self) -> Link:
        """The connection; made anew, all checks included, after it was lost. Away if there is no server."""
        with self._linking:
            if self._link is None:
                self._link = self._connect()
            return self._link

    def _connect(self) -> Link:
        path = self.file(self._spec)
        endpoint = read_endpoint(path)
        if endpoint is None or endpoint.ended:
            check_not_failed(self._spec, path)
            raise Away(f"{path} {'does not exist' if endpoint is None else 'says that its server has ended'}")
        if check_fingerprint(self._spec, self._mode, endpoint, path) != self.fingerprint:
            raise EngineError(
                f"{path}: a server on another device or of other versions took the former one's place (fingerprint "
                f"{endpoint.fingerprint[:12]}, this stage began with {self.fingerprint[:12]}); serve it as before"
            )
        address = safe_address(endpoint.url)
        try:
            key = read_key(key_file(path))
        except ModelError:
            if (now := read_endpoint(path)) != endpoint:  # it is being replaced
                raise Away(f"{path} is being replaced by {now}") from None
            raise
        link = Link(Client(address, key), endpoint, key)
        try:
            names = [model["id"] for model in link.client.ask("/models")["data"]]
        except (OSError, Unproven) as error:
            if isinstance(error, Unproven) and self._renewed(link):
                raise Away(f"{path} is being replaced") from error
            if isinstance(error, OSError) and address.startswith(UNIX) and endpoint.node != socket.gethostname():
                raise Away(
                    f"it listens on a Unix socket of {endpoint.node}, and this is {socket.gethostname()}: serve with "
                    "--host node, so that other machines reach it"
                ) from error
            raise
        if self.fingerprint not in names:
            raise EngineError(self._stranger())
        return link

    def _renewed(self, link: Link | None) -> bool:
        """Whether endpoint or key changed since the connection was made."""
        endpoint = read_endpoint(self.file(self._spec))
        if link is None or endpoint is None:
            return endpoint is None
        try:
            return endpoint != link.endpoint or read_key(key_file(self.file(self._spec))) != link.key
        except ModelError:
            return True

    def _stranger(self) -> str:
        return (
            f"the server at the address in {self.file(self._spec)} does not serve fingerprint {self.fingerprint[:12]} "
            f"of {self._spec.path}: it is another one; start 'proctor serve' again"
        )


def check_fingerprint(spec: ModelSpec, mode: str, endpoint: Endpoint, path: Path) -> str:
    """The fingerprint of the spec's model on the endpoint's machine. ModelError if the endpoint's is another."""
    if mode == "batch-invariant" and endpoint.mode != mode:
        raise ModelError(f"{path}: the server runs in mode {endpoint.mode}, not {mode}; start it in that mode")
    expected = fingerprint(
        spec, mode=endpoint.mode, device=endpoint.device, lora=endpoint.lora, versions=endpoint.versions
    )
    if expected != endpoint.fingerprint:
        raise ModelError(
            f"{path}: the server's fingerprint is {endpoint.fingerprint[:12]}, that of {spec.path} as it is to "
            f"be served is {expected[:12]}: its weights, tokenizer, template or arguments are not the same; "
            "serve this model"
        )
    return expected


def served_fingerprints(specs: Sequence[ModelSpec]) -> tuple[int, int] | None:
    """Room for adapters that a server of these models needs. ModelError if they can't be served together."""
    adapters = [spec.adapter for spec in specs if spec.adapter]
    if len(specs) > 1 and len(adapters) < len(specs):
        raise ModelError(
            "a base and its adapters can't share a server: vLLM (on a CPU, 0.32) answers the base's requests with "
            "an adapter when they share a step; serve the base apart"
        )
    return limits(adapters)
