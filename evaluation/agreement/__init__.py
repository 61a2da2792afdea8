"""How well automatic scores agree with people, and people with each other (KIEval, arXiv 2402.15043).

- ``correlation``: Pearson, Spearman and Kendall's tau-b, with bootstrap intervals;
- ``ordering``: the share of item pairs that a score orders as people do;
- ``kappa``: Cohen's kappa (also weighted, also averaged over pairs of annotators) and Fleiss' kappa;
- ``rows``: the user's file; ``votes``: pairwise judgments as FastChat writes them;
- ``report``: the figures of a file, overall and by group.

A figure that can't be had (a constant side, too few rows) is None and carries its reason; it is never NaN.
"""
