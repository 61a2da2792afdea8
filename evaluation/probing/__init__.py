"""Meta Probing Agents (Zhu et al. 2024, arXiv 2402.14865): items rewritten by psychometric principles, and what the
rewriting does to a candidate's accuracy."""
