"""serve: one examiner for many jobs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from proctor.runner.interruption import Interruption

LOOK_EVERY_S = 5.0
ASK_SLURM_EVERY_S = 15.0
"""How often it is looked whether a stage still needs the server; in a job, where SLURM is asked, less often."""


def serve(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Entries of the experiment's models.")],
    run: Annotated[Path, typer.Option("--run", metavar="RUN", help="Run folder, made by 'proctor run' or 'submit'.")],
    host: Annotated[
        str | None,
        typer.Option(
            envvar="PROCTOR_SERVE_HOST",
            help="Address to listen on where other machines ask: a private one, or 'node' (this machine's own). "
            "By default a Unix socket in RUN, for stages on this machine.",
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Go on when no stage needs it any more.")] = False,
) -> None:
    """Serve a model (engine: server), or several adapters of one base, to the stages of a run."""
    from proctor.cluster.serve_jobs import needing, node_address, still_needed
    from proctor.run_folder.run import open_run
    from serving.endpoint import write_failure
    from serving.errors import EngineError
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
    folder = opened.path / "serving"
    asked_to_stop = False

    def stop(*_: object) -> None:  # SLURM's warning before the time limit: the job goes back to the queue
        nonlocal asked_to_stop
        asked_to_stop = True
        raise Interruption

    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGUSR1, stop)
    looked = time.monotonic()
    every = ASK_SLURM_EVERY_S if "SLURM_JOB_ID" in os.environ else LOOK_EVERY_S
    served = True

    def over() -> bool:
        nonlocal looked, served
        if not keep and time.monotonic() - looked > every:
            looked = time.monotonic()
            served = bool(still_needed(open_run(run), models))
        return not served

    server = None
    try:
        server = Server(specs, folder, host=node_address() if host == "node" else host, mode=mode, say=_say)
        _say(f"loading {', '.join(models)}")
        server.start()
        _say(f"serving at {server.url} for {len(waiting)} stages; {server.file(models[0])}")
        server.watch(over)
        _say("no stage needs it any more")
    except KeyboardInterrupt:
        _say("ended by a signal")
    except (EngineError, ValueError) as error:
        if isinstance(error, EngineError) or "SLURM_JOB_ID" in os.environ:  # else whoever typed it reads it
            for name in models:
                write_failure(folder / f"{name}.json", str(error))
        raise
    finally:
        if server is not None:
            server.stop()
    if asked_to_stop:
        raise typer.Exit(75)


def _say(text: str) -> None:
    print(text, flush=True)


def _as_interrupt(*_: object) -> None:
    raise Interruption
