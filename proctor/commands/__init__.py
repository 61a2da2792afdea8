"""The verbs of the command, by what they work on."""
