"""The stages of an experiment: one file each, made of a slice of the experiment and a function that writes files."""
