"""The ``proctor`` command. Exit codes: 0 done, 1 a stage failed, 2 the user's input is wrong, 75 interrupted.

Light to import: every verb imports what it needs when it is called.
"""

from __future__ import annotations

import errno
import os
import signal
import sys


def _stop_early(*_: object) -> None:
    """SIGUSR1 (SLURM's warning) before the verb that was called listens to it itself: nothing has been done yet."""
    os.write(2, b"error: interrupted; run the same command again to go on\n")
    os._exit(75)


def _listen() -> None:
    """A runner holds the signal back until it can be heard."""
    signal.signal(signal.SIGUSR1, _stop_early)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})


if __name__ == "__main__":  # before the imports below, which take a while
    _listen()

from proctor.offline import go_offline  # noqa: E402

go_offline()

import typer  # noqa: E402

from proctor import __version__  # noqa: E402
from proctor.commands import (  # noqa: E402
    agree,
    analyse,
    build,
    cluster,
    detect,
    evaluate,
    examiner,
    groups,
    idgen,
    models,
    probing,
    rate,
    rejudge,
    runs,
    serve,
    train,
)
from proctor.commands import list as listing  # noqa: E402

app = typer.Typer(
    name="proctor",
    help="Examines open-weight language models offline and tells understanding from a leaked exam.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        print(f"proctor {__version__}")
        raise typer.Exit


app.command("run")(runs.run)
app.command("submit")(cluster.submit)
app.command("cancel")(cluster.cancel)
app.command("status")(runs.status)
app.command("report")(runs.report)
app.command("compare")(runs.compare)
app.command("check")(runs.check)
app.command("stage")(runs.stage)
app.command("estimate")(runs.estimate)
app.command("serve")(serve.serve)
app.command("evaluate")(evaluate.evaluate)
app.command("build")(build.build)
app.command("rank")(groups.rank)
app.command("peer")(groups.peer)
app.command("detect")(detect.detect)
app.command("train")(train.train)
app.command("list")(listing.list_)
app.command("rejudge")(rejudge.rejudge)
app.command("conversations")(rejudge.conversations)
app.command("agree")(agree.agree)
app.command("analyse")(analyse.analyse)
app.add_typer(models.app, name="models")
app.add_typer(rate.app, name="rate")
app.add_typer(examiner.app, name="examiner")
app.add_typer(probing.app, name="probing")
app.add_typer(idgen.app, name="idgen")


def main() -> None:
    """Entry point: turns errors into one message and the right exit code."""
    _listen()
    from proctor.run_folder.stage import StageBusy
    from proctor.runner.local import INTERRUPTED, StageFailed

    try:
        code = app(standalone_mode=False)
    except (ValueError, StageBusy) as error:
        _fail(str(error), 2)
    except StageFailed as error:
        _fail(str(error), error.code)
    except KeyboardInterrupt:
        _fail("interrupted; run the same command again to go on", INTERRUPTED)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT)
        named = (error.filename2 if full else None) or error.filename  # a copy names its source first
        _fail(f"{named or 'a file'}: {error.strerror or error}", 1 if full else 2)
    except RuntimeError as error:
        if type(error).__name__ == "ServerGone":  # by its name: the class is not imported where nothing is served
            _fail(str(error), INTERRUPTED)
        if type(error) is RuntimeError or type(error).__module__.startswith(("serving.", "training.", "slurm.")):
            _fail(str(error), 1)
        raise
    except Exception as error:
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()  # a usage error: typer says what is wrong
        sys.exit(error.exit_code)
    if code == 130:  # typer's word for Ctrl-C
        _fail("interrupted; run the same command again to go on", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    from evaluation.show.terminal_text import harmless

    print(f"error: {harmless(message)}", file=sys.stderr, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
