"""The experiment file: read, resolved, made."""
