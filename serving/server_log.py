"""What a server's log says of its end."""

from __future__ import annotations

import re

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
