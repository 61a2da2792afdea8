"""Exams that a judge marks: MT-Bench and pairwise comparison."""
