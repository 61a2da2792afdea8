"""Token probabilities of many texts at once."""
