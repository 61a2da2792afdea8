"""The one way out to a terminal for text that a model, a file or an error message holds."""

from __future__ import annotations

import unicodedata

LONGEST = 20_000
"""Characters of one message; a value of 200 MB may stand in an error."""


def harmless(text: str) -> str:
    """``text`` with control characters, marks of writing direction and lone surrogates as escapes, lines and tabs kept.

    Nothing in it moves the cursor, changes a title or colours, or hides what stands before it. What is longer than
    ``LONGEST`` is cut, and says so.
    """
    cut = len(text) - LONGEST
    if cut > 0:
        text = f"{text[:LONGEST]} [... {cut:,} more characters]"
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in "\t\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else ascii(c)[1:-1] for c in text
    )
