"""Jobs for a SLURM cluster: what a job is, the site's profile, its script, and the commands that submit and follow it.

Knows nothing of experiments: ``proctor`` maps stages to jobs.
"""
