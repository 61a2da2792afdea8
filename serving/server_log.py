"""What a server's log says of its end, and its metrics of its work."""

from __future__ import annotations

import re
import signal
from pathlib import Path

_ORIGIN = r"(?:\([^()]*pid=\d+\) ?)?"
_LEVEL = re.compile(_ORIGIN + r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::\s*| [\d-]+ [\d:.]+ \[[^\]]*\] )")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt)\b(?:: .|$)|\S+(?: \S+)?: error: "
)
_TRACEBACK = ("Traceback (", "During handling of", "The above exception")
_POINTS_ELSEWHERE = re.compile(r"[Ss]ee (?:the )?(?:root cause|stack trace|error|log)[^.]* (?:above|below)")


def last_error(log: str) -> str:
    """The last line that tells of an error: an exception with its text, or a line of level ERROR. At most 300
    characters; "" if there is none.

    A line of a lower level is none, whatever its words; one that only points to another counts if that is not there.
    """
    second = ""
    for line in reversed(log.splitlines()):
        marked = _LEVEL.match(line)
        words = line[marked.end() :] if marked else re.sub(_ORIGIN, "", line, count=1)
        if marked and marked["level"] not in ("ERROR", "CRITICAL"):
            continue
        if not words.strip() or words[0].isspace() or words.startswith(_TRACEBACK):
            continue
        if not marked and not _EXCEPTION.match(words):
            continue
        if not _POINTS_ELSEWHERE.search(words):
            return words.strip()[:300]
        second = second or words.strip()[:300]
    return second


def last_words(log: Path, begin: int, code: int | None) -> str:
    """The last error in a log since ``begin`` (bytes), or the signal that ended the process; and where the log is."""
    with log.open("rb") as stream:
        stream.seek(max(begin, log.stat().st_size - 200_000))
        said = last_error(stream.read().decode("utf-8", "replace"))
    if not said and code is not None and code < 0:
        said = f"it was ended by signal {signal.Signals(-code).name}"
    return f"{said or 'it said nothing of an error'} (log: {log})"


def tokens(metrics: str) -> tuple[float, float]:
    """Prompt tokens read and tokens generated since a server started, from its page of metrics."""
    totals = []
    for name in ("prompt_tokens_total", "generation_tokens_total"):
        found = re.findall(rf"^vllm:{name}(?:\{{[^}}]*\}})? ([0-9.e+]+)$", metrics, re.MULTILINE)
        totals.append(sum(float(value) for value in found))
    return totals[0], totals[1]
