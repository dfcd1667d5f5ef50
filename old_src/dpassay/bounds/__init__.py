"""Certificates: from counts and bounded variables to bounds with a stated error probability."""
