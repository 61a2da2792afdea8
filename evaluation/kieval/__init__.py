"""KIEval (arXiv 2402.15043): the interview, its verdicts and scores."""
