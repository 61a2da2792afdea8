"""Doing the stages of a run."""
