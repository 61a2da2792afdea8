"""vLLM's OpenAI-compatible server as a child, watched: started again when it dies, never left behind.

It listens on a Unix socket in a folder that only this user can enter, or where other machines ask it, on a port. A port
is everyone's: it can be taken before the child binds it. So nothing that answers is believed, and no key is written,
before it has proved that it knows the key, which only the child was given (serving/proof.py); each start has a new one.
"""

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

from serving.client import UNIX, Client
from serving.endpoint import (
    Endpoint,
    bracketed,
    failure_file,
    free_port,
    key_file,
    own_folder,
    read_endpoint,
    safe_address,
    write_key,
)
from serving.engines.common import context_length
from serving.engines.process import child_environment
from serving.engines.server_engine import served_fingerprints
from serving.engines.vllm_arguments import as_flags, vllm_arguments
from serving.errors import EngineError
from serving.model.fingerprint import fingerprint, resolve_model, versions_for
from serving.model.folder import ModelError, check_complete
from serving.model.spec import ModelSpec
from serving.proof import HEALTH, Unproven, new_key
from serving.role_engines import device_and_threads
from serving.server_guard import KEY_VARIABLE
from serving.server_log import last_words, tokens

START_LIMIT = 1800.0
"""Seconds a server may take to load its model."""
RESTARTS = 3
"""How often a server that died is started again within an hour."""
_SOCKET = re.compile(r"server-[0-9a-f]{8}\.sock")


class Server:
    """One child that serves models: a base, or adapters of one base. Files go into ``folder``.

    models: name -> how it is served (engine: server). ModelError if they can't be served together
    host: address of this machine to listen on; None: a Unix socket in ``folder``
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        folder: Path,
        *,
        host: str | None = None,
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
        if host is not None:
            safe_address(f"http://{bracketed(host)}:80/v1")
            free_port(host)
        self.url = self.key = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._client: Client | None = None
        self._log: IO[bytes] | None = None
        self._log_begin = 0
        self._deaths: list[float] = []

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def start(self) -> None:
        """Starts the child, waits until it is well, then writes the endpoint files. EngineError if it doesn't start."""
        own_folder(self.folder)
        for name in self.models:
            failure_file(self.file(name)).unlink(missing_ok=True)
            former = self._endpoint(name)
            if former is not None and _SOCKET.fullmatch(Path(former.url).name):  # of a server that was killed
                (self.folder / Path(former.url).name).unlink(missing_ok=True)
        self._begin()

    def _endpoint(self, name: str) -> Endpoint | None:
        """What the endpoint file says; None if there is none, or a damaged one, which is written anew."""
        with contextlib.suppress(ModelError):
            return read_endpoint(self.file(name))
        return None

    def _begin(self) -> None:
        """A child with a new key and a new address; the files that name them once it is well."""
        self._spawn()
        self._wait()
        for name in self.models:
            write_key(key_file(self.file(name)), self.key)
            Endpoint(
                url=self.url,
                fingerprint=self.fingerprints[name],
                mode=self.mode,
                device=self.device,
                versions=versions_for(self._spec),
                lora=self._lora,
                node=socket.gethostname(),
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

        for name in self.models:
            endpoint = self._endpoint(name)
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
        self._forget_address()
        for name in self.models:
            key_file(self.file(name)).unlink(missing_ok=True)

    def command(self, where: list[str]) -> list[str]:
        """The child's command line. The key is not in it, for everyone may read that.

        where: the arguments that say where it listens
        """
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
            *[*where, "--middleware", "serving.server_guard.Guard", "--served-model-name", name],
            *(["--lora-modules", *served] if served else []),
            *as_flags(arguments),
        ]

    def _spawn(self) -> None:
        self._forget_address()
        self.key = new_key()
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self.host is None:  # by the open folder: a socket's own address may have 107 bytes
                name = f"server-{secrets.token_hex(4)}.sock"
                self.url = f"{UNIX}{self.folder.resolve() / name}"
                where = ["--uds", f"/proc/self/fd/{folder}/{name}"]
            else:
                port = free_port(self.host)
                self.url = f"http://{bracketed(self.host)}:{port}/v1"
                where = ["--host", self.host, "--port", str(port)]
            self._client = Client(self.url, self.key)
            environment = {**os.environ, **child_environment(self._threads), KEY_VARIABLE: self.key}
            environment["PROCTOR_PARENT"] = str(os.getpid())
            if self.mode == "batch-invariant":
                environment["VLLM_BATCH_INVARIANT"] = "1"
            environment.pop("VLLM_ENABLE_V1_MULTIPROCESSING", None)  # the server's engine is a process of its own
            if self._log is None:
                self._log = self._log_path().open("ab")
            self._log_begin = self._log.tell()
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments, no shell
                self.command(where),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                pass_fds=(folder,),
            )
        finally:
            os.close(folder)

    def _forget_address(self) -> None:
        if self._client:
            self._client.close()
        if self.url.startswith(UNIX):
            Path(self.url.removeprefix(UNIX)).unlink(missing_ok=True)

    def _wait(self) -> None:
        """Until the child is well. EngineError if it ends, or if anything answers in its place."""
        until = time.monotonic() + START_LIMIT
        while time.monotonic() < until:
            assert self.process is not None
            if self.process.poll() is not None:
                raise EngineError(f"the server ended while it started: {self._last_words()}{self._usurped()}")
            try:
                well = self._get(HEALTH) is not None
            except Unproven as error:
                raise EngineError(self._taken(error)) from error
            if well:
                return
            time.sleep(0.5)
        raise EngineError(f"the server is not well after {START_LIMIT:.0f} s; see {self._log_path()}")

    def _taken(self, error: Unproven) -> str:
        return (
            f"another program answers at {self.url} in the server's place ({error}); it was told nothing. On one "
            "machine leave out --host: a Unix socket can't be taken. Otherwise find out whose it is ('ss -ltnp' shows "
            "it to root) and serve again, on another port"
        )

    def _usurped(self) -> str:
        """What answers at the address though the child has ended; "" if nothing does."""
        try:
            self._get(HEALTH)
        except Unproven as error:
            return "; " + self._taken(error)
        return ""

    def _again(self) -> None:
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < 3600] + [now]
        code = None if self.process is None else self.process.returncode
        for name in self.models:  # whoever asks waits, and tries neither the old key nor the old address
            self.file(name).unlink(missing_ok=True)
            key_file(self.file(name)).unlink(missing_ok=True)
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if usurped := self._usurped():
            raise EngineError(f"the server died (exit code {code}){usurped}")
        if len(self._deaths) > RESTARTS:
            raise EngineError(f"the server died {len(self._deaths)} times (exit code {code}): {self._last_words()}")
        self._say(f"the server died (exit code {code}); starting it again ({len(self._deaths)} of {RESTARTS})")
        self._begin()
        self._say("the server is back")

    def _tokens(self) -> tuple[float, float]:
        """Prompt tokens read and tokens generated since the server started."""
        with contextlib.suppress(Unproven):  # the child has gone, which watch sees next
            return tokens(self._get("/metrics") or "")
        return 0.0, 0.0

    def _get(self, path: str) -> str | None:
        """The body of a page of our own server; None if it doesn't answer 200. Unproven if it is not ours."""
        assert self._client is not None
        try:
            answer = self._client.get(path)
        except (OSError, http.client.HTTPException):
            return None
        return answer.body.decode("utf-8", "replace") if answer.status == 200 else None

    def _log_path(self) -> Path:
        return self.folder / f"{next(iter(self.models))}.log"

    def _last_words(self) -> str:
        return last_words(self._log_path(), self._log_begin, self.process.returncode if self.process else None)
