"""Discrimination and difficulty of an item estimated from its text, before anybody has sat it (IDGen, section 4).

- ``rows``: what is learned from, and the features; ``baseline``: TF-IDF and logistic regression (scikit-learn);
- ``classifier``: a sequence classifier (transformers); ``difficulty``: linear regression of the difficulty;
- ``validation``: cross-validated accuracy against the majority class, and rank correlations.

All are saved without pickle: JSON, and safetensors for weights.
"""
