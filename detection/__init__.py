"""Evidence of leakage: detectors over token probabilities, and the audit that weighs what they say."""
