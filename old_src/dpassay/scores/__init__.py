"""Scores of outputs: estimates of the privacy loss ℓ = log p/q, and other test statistics."""
