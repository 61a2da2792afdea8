"""Language-Model-as-an-Examiner (Bai et al. 2023, arXiv 2306.04181): the parts of exams that a model writes and marks.

- ``taxonomy``, ``questions``, ``levels``, ``writing``: domains are drawn, questions written, read, checked, classified;
- ``answering``, ``marking``: a candidate's answer and its five marks; ``marks``: the figures of a set;
- ``choices``, ``comparing``, ``schedules``, ``ranking``: comparison of two answers in both orders, and what follows;
- ``peer``: examination of models by each other;
- ``leakage``, ``embeddings``, ``style``, ``annotation``: whether questions are old, whether an examiner is biased, and
  whether people agree with it.

The paper's code is not public; every prompt here is our own.
"""
