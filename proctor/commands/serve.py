"""serve: one examiner for many jobs."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated

import typer


def serve(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Entries of the experiment's models.")],
    run: Annotated[Path, typer.Option("--run", metavar="RUN", help="Run folder, made by 'proctor run' or 'submit'.")],
    host: Annotated[
        str, typer.Option(envvar="PROCTOR_SERVE_HOST", help="Address to listen on: loopback or a private one.")
    ] = "127.0.0.1",
    keep: Annotated[bool, typer.Option("--keep", help="Go on when no stage needs it any more.")] = False,
) -> None:
    """Serve a model (engine: server), or several adapters of one base, to the stages of a run."""
    from proctor.runfolder import open_run
    from proctor.serving_needs import needing
    from serving.server_process import Server

    opened = open_run(run)
    specs = {}
    for name in models:
        if name not in opened.experiment.models:
            known = ", ".join(opened.experiment.models)
            raise ValueError(f"{run}: no model {name!r} in the experiment; there are: {known}")
        specs[name] = opened.experiment.models[name]
        if specs[name].engine != "server":
            raise ValueError(
                f"{run}: model {name!r} has engine {specs[name].engine}, so no stage would ask a server for it; "
                "set its engine to server"
            )
    waiting = needing(opened, models)
    if not waiting and not keep:
        print(f"nothing to do: no stage of {run} needs {', '.join(models)} any more")
        return
    mode = "batch-invariant" if opened.experiment.mode == "batch-invariant" else "fast"
    server = Server(specs, opened.path / "serving", host=host, mode=mode, say=_say)
    signal.signal(signal.SIGTERM, _as_interrupt)
    looked = time.monotonic()
    served = True

    def over() -> bool:
        nonlocal looked, served
        if not keep and time.monotonic() - looked > 5:
            looked = time.monotonic()
            served = bool(needing(open_run(run), models))
        return not served

    try:
        _say(f"loading {', '.join(models)}")
        server.start()
        _say(f"serving at {server.url} for {len(waiting)} stages; {server.file(models[0])}")
        server.watch(over)
        _say("no stage needs it any more")
    except KeyboardInterrupt:
        _say("ended by a signal")
    finally:
        server.stop()


def _say(text: str) -> None:
    print(text, flush=True)


def _as_interrupt(*_: object) -> None:
    raise KeyboardInterrupt
