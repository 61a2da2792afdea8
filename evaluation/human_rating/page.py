"""The annotation page: one HTML file that works from a local disk and asks nothing of any network."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from evaluation.human_rating.conversations import Conversation


def page(chosen: Mapping[str, Conversation]) -> str:
    """The page. Texts are embedded as JSON in which <, > and & are escaped, and shown as text nodes: hostile ones can
    neither end the script nor become markup. A content security policy forbids every request."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True)
    rows = [{"id": name, "context": c.context, "question": c.question, "reply": c.reply} for name, c in chosen.items()]
    source = (resources.files("evaluation") / "human_rating" / "rate.html").read_text(encoding="utf-8")
    export = next(iter(chosen), "").partition("-")[0]
    return environment.from_string(source).render(rows=rows, export=export)
