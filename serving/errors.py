"""What can go wrong with a model that is being asked."""

from __future__ import annotations


class EngineError(RuntimeError):
    """A model could not be loaded, or its engine died; the message names the model."""


class ServerGone(EngineError):
    """A server was not there for longer than the model's patience; what it answered is in the ledger: run again."""
