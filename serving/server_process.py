"""vLLM's OpenAI-compatible server as a child, watched: started again when it dies, never left behind."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from serving.endpoint import Endpoint, failure_file, safe_address, write_key
from serving.engines.base import EngineError
from serving.engines.common import context_length
from serving.engines.process import child_environment
from serving.engines.server_engine import served_fingerprints
from serving.engines.vllm_arguments import as_flags, vllm_arguments
from serving.model.fingerprint import fingerprint, resolve_model, versions_for
from serving.model.folder import check_complete
from serving.model.spec import ModelSpec
from serving.role_engines import device_and_threads

START_LIMIT = 1800.0
"""Seconds a server may take to load its model."""
RESTARTS = 3
"""How often a server that died is started again within an hour."""


class Server:
    """One child that serves models: a base, or adapters of one base. Files go into ``folder``.

    models: name -> how it is served (engine: server). ModelError if they can't be served together
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        folder: Path,
        *,
        host: str = "127.0.0.1",
        mode: str = "fast",
        say: Callable[[str], None] = print,
    ) -> None:
        self.models, self.folder, self.host, self.mode = dict(models), folder, host, mode
        self._say = say
        self._lora = served_fingerprints(list(self.models.values()))
        first = next(iter(self.models.values()))
        self._model_folder = resolve_model(first)
        check_complete(self._model_folder, allow_pickle=first.allow_pickle)
        self.device, self._threads = device_and_threads()
        self._spec = first
        self.fingerprints = {
            name: fingerprint(spec, mode=mode, device=self.device, lora=self._lora)
            for name, spec in self.models.items()
        }
        safe_address(f"http://{_bracketed(host)}:80/v1")
        self.port = _free_port(host)
        self.key = secrets.token_urlsafe(32)
        self.process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._deaths: list[float] = []

    @property
    def url(self) -> str:
        return f"http://{_bracketed(self.host)}:{self.port}/v1"

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def start(self) -> None:
        """Starts the child, waits until it is well, then writes the endpoint files. EngineError if it doesn't start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self.models:
            failure_file(self.file(name)).unlink(missing_ok=True)
        self._spawn()
        self._wait()
        for name in self.models:
            key_file = self.folder / f"{name}.key"
            write_key(key_file, self.key)
            Endpoint(
                url=self.url,
                fingerprint=self.fingerprints[name],
                key_file=str(key_file.resolve()),
                mode=self.mode,
                device=self.device,
                versions=versions_for(self._spec),
                lora=self._lora,
            ).write(self.file(name))

    def watch(self, over: Callable[[], bool], *, every: float = 2.0, report_every: float = 30.0) -> None:
        """Until ``over()``: a server that died is started again, throughput is said. EngineError if it keeps dying."""
        last, said = self._tokens(), time.monotonic()
        while not over():
            time.sleep(every)
            if self.process is None or self.process.poll() is not None:
                self._again()
                last, said = self._tokens(), time.monotonic()
                continue
            if time.monotonic() - said >= report_every:
                now, seconds = self._tokens(), time.monotonic() - said
                if now != last:
                    prompt, output = (max(0.0, b - a) / seconds for a, b in zip(last, now, strict=True))
                    self._say(f"{prompt:.0f} prompt tokens/s, {output:.0f} generated tokens/s")
                last, said = now, time.monotonic()

    def stop(self) -> None:
        """Ends the child and all that it started; the endpoint files say so first, the keys are gone."""
        from dataclasses import replace

        from serving.endpoint import read_endpoint

        for name in self.models:
            endpoint = read_endpoint(self.file(name))
            if endpoint is not None and endpoint.url == self.url:
                replace(endpoint, ended=True).write(self.file(name))
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None
        for name in self.models:
            (self.folder / f"{name}.key").unlink(missing_ok=True)

    def command(self) -> list[str]:
        """The child's command line. The key is not in it, for everyone may read that."""
        adapters = [spec.adapter for spec in self.models.values() if spec.adapter]
        arguments = vllm_arguments(
            self._spec,
            self._model_folder,
            max_length=context_length(self._spec, self._model_folder),
            on_cpu=self._threads is not None,
            adapters=adapters,
        )
        served = [f"{self.fingerprints[name]}={spec.adapter}" for name, spec in self.models.items() if spec.adapter]
        name = "base" if adapters else next(iter(self.fingerprints.values()))
        return [
            *[sys.executable, "-P", "-m", "serving.server_child", "serve", str(self._model_folder)],
            *["--host", self.host, "--port", str(self.port), "--served-model-name", name],
            *(["--lora-modules", *served] if served else []),
            *as_flags(arguments),
        ]

    def _spawn(self) -> None:
        environment = {**os.environ, **child_environment(self._threads), "VLLM_API_KEY": self.key}
        environment["PROCTOR_PARENT"] = str(os.getpid())
        if self.mode == "batch-invariant":
            environment["VLLM_BATCH_INVARIANT"] = "1"
        environment.pop("VLLM_ENABLE_V1_MULTIPROCESSING", None)  # the server's engine is a process of its own
        if self._log is None:
            self._log = (self.folder / f"{next(iter(self.models))}.log").open("ab")
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments, no shell
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )

    def _wait(self) -> None:
        until = time.monotonic() + START_LIMIT
        while time.monotonic() < until:
            assert self.process is not None
            if self.process.poll() is not None:
                raise EngineError(f"the server ended while it started: {self._last_words()}")
            if self._get("/health") is not None:
                return
            time.sleep(0.5)
        raise EngineError(f"the server is not well after {START_LIMIT:.0f} s; see {self._log_path()}")

    def _again(self) -> None:
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < 3600] + [now]
        code = None if self.process is None else self.process.returncode
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if len(self._deaths) > RESTARTS:
            raise EngineError(f"the server died {len(self._deaths)} times (exit code {code}): {self._last_words()}")
        self._say(f"the server died (exit code {code}); starting it again ({len(self._deaths)} of {RESTARTS})")
        self._spawn()
        self._wait()
        self._say("the server is back")

    def _tokens(self) -> tuple[float, float]:
        """Prompt tokens read and tokens generated since the server started."""
        text = self._get("/metrics") or ""
        totals = []
        for name in ("prompt_tokens_total", "generation_tokens_total"):
            found = re.findall(rf"^vllm:{name}(?:\{{[^}}]*\}})? ([0-9.e+]+)$", text, re.MULTILINE)
            totals.append(sum(float(value) for value in found))
        return totals[0], totals[1]

    def _get(self, path: str) -> str | None:
        """The body of a page of our own server; None if it doesn't answer 200."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode("utf-8", "replace")
            return body if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _log_path(self) -> Path:
        return self.folder / f"{next(iter(self.models))}.log"

    def _last_words(self) -> str:
        text = self._log_path().read_bytes()[-20_000:].decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if "Error" in line]
        return f"{lines[-1][-300:] if lines else 'it said nothing of an error'} (log: {self._log_path()})"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ValueError(f"host {host} is no address of this machine ({error.strerror})") from error
        return int(probe.getsockname()[1])
