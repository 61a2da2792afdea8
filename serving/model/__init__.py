"""A model: its settings, folder, identity."""
