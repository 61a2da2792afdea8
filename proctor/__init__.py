"""The front door of Proctor: the ``proctor`` command, experiment files, stages, run folders and reports."""

__version__ = "0.1.0"
