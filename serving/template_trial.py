"""A chat template is a program of the model's maker: before it is trusted, it runs once where it can do no harm.

It is rendered in a process of its own with limits of time, memory and length, in the sandbox and with the names that
transformers gives templates. A template that raises is trusted (``serving.rendering`` deals with refusals); one that
does not end, or that writes without end, is refused. What passed is noted by its hash in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
from typing import Any

from serving.files import write_text
from serving.model.embedded import cache_folder
from serving.model.folder import ModelError

SECONDS = 5
MEMORY = 512 * 1024**2
"""Bytes beside what the process needs to begin."""
LONGEST = 1_000_000
"""Characters of a template, and of what it makes of three short turns."""
_TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Good day."},
    {"role": "user", "content": "And now?"},
]
_TALKS = [_TURNS[1:2], _TURNS[:2], _TURNS[1:3], _TURNS]


def check_template(template: Any, where: str) -> None:
    """ModelError if the template can't be trusted. template: a tokenizer's: a text, texts by name, or None"""
    for text in template.values() if isinstance(template, dict) else [template]:
        if isinstance(text, str):
            _check(text, where)
        elif text is not None:
            raise ModelError(f"the chat template of {where} is no text; copy the tokenizer's files again")


def _check(text: str, where: str) -> None:
    if len(text) > LONGEST:
        raise ModelError(f"the chat template of {where} has {len(text):,} characters, more than {LONGEST:,}; remove it")
    data = json.dumps(text)
    passed = cache_folder() / "templates" / hashlib.sha256(data.encode()).hexdigest()
    if passed.is_file():
        return
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and code, no shell
            [sys.executable, "-P", "-c", f"from serving.template_trial import try_out; try_out({SECONDS})"],
            input=data,
            capture_output=True,
            text=True,
            timeout=12 * SECONDS,
            env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        )
        said, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired:
        said, code = "", -1
    if code != 0 or said != "well":
        raise ModelError(
            f"the chat template of {where} is not to be trusted: three short turns take it more than {SECONDS} s, "
            f"{MEMORY // 1024**2} MiB or {LONGEST:,} characters; set chat_template to another file, or to 'none'"
        )
    with contextlib.suppress(OSError):
        write_text(passed, "")


def try_out(seconds: int) -> None:
    """In the child: renders the template on standard input and says ``well``, or ends badly."""
    import resource
    from pathlib import Path

    import jinja2
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The block ``generation``, which transformers marks a model's own turns with."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    template = json.loads(sys.stdin.read())
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False)
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: "26 Jul 2024"}
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for talk in _TALKS:
        for opened in (True, False):
            values = {"bos_token": "<s>", "eos_token": "</s>", "date_string": "26 Jul 2024"}
            length = 0
            try:
                for piece in environment.from_string(template).generate(
                    messages=talk, add_generation_prompt=opened, **values
                ):
                    length += len(piece)
                    if length > LONGEST:
                        return
            except MemoryError:
                return
            except Exception:  # noqa: S112 - a refusal, in whatever way
                continue
    sys.stdout.write("well")
