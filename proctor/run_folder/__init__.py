"""A run on disk: its stages, places and environment."""
