"""The words with which a server's end is told: its last error, not a line that has the word in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving import server_process
from serving.errors import EngineError
from serving.model.spec import ModelSpec
from serving.server_log import last_error
from serving.server_process import Server

TRACEBACK = """\
(EngineCore pid=71) ERROR 12-01 03:20:11 [core.py:946] EngineCore failed to start.
(EngineCore pid=71) ERROR 12-01 03:20:11 [core.py:946] Traceback (most recent call last):
(EngineCore pid=71) ERROR 12-01 03:20:11 [core.py:946]   File "core.py", line 940, in run_engine_core
(EngineCore pid=71) ERROR 12-01 03:20:11 [core.py:946]     raise ValueError("No available memory")
(EngineCore pid=71) ERROR 12-01 03:20:11 [core.py:946] ValueError: No available memory for the cache blocks.
"""
POINTER = """\
(APIServer pid=70) Traceback (most recent call last):
(APIServer pid=70)   File "vllm", line 8, in <module>
(APIServer pid=70)     sys.exit(main())
(APIServer pid=70) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
INFO = "(APIServer pid=70) INFO 12-01 03:20:30 [launcher.py:99] Route: /v1/x, ErrorResponse: none; Error count 0\n"
WARNING = "WARNING 12-01 03:20:30 [cpu.py:1] RuntimeError: caught, going on\n"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (TRACEBACK + POINTER + INFO + WARNING, "ValueError: No available memory for the cache blocks."),
        (POINTER + INFO, "RuntimeError: Engine core initialization failed. See root cause above. "
         "Failed core proc(s): {}"),
        (TRACEBACK + "OSError: [Errno 98] Address already in use\n", "OSError: [Errno 98] Address already in use"),
        ("INFO:     Started server process\nERROR:    [Errno 98] error while attempting to bind on address\nINFO:  x",
         "[Errno 98] error while attempting to bind on address"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n" + INFO,
         "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        ("usage: vllm serve\nvllm serve: error: argument --port: invalid int value\n",
         "vllm serve: error: argument --port: invalid int value"),
        (INFO + WARNING + "all Errors are gone\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_last_error_is_quoted(log: str, said: str) -> None:
    assert last_error(log) == said


def test_a_server_that_does_not_start_says_why(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of what an earlier one said nothing is quoted."""
    import sys

    server = Server({"m": ModelSpec(path=str(tiny), engine="server")}, tmp_path / "serving", say=lambda text: None)
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "m.log").write_text("ValueError: of yesterday\n")
    monkeypatch.setattr(server_process, "START_LIMIT", 90.0)
    code = f"print({TRACEBACK + POINTER + INFO!r}); raise SystemExit(1)"
    monkeypatch.setattr(server, "command", lambda where: [sys.executable, "-c", code])
    with pytest.raises(EngineError, match=r"ended while it started: ValueError: No available memory .*m\.log\)$"):
        server.start()
    monkeypatch.setattr(server, "command", lambda where: [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    with pytest.raises(EngineError, match=r"ended while it started: it was ended by signal SIGKILL \(log"):
        server.start()
    server.stop()
