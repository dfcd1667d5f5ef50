"""One training run: guesses about who was in, and how well scores tell."""
