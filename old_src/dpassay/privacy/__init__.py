"""Claims, trade-off functions, privacy profiles and finite pairs of distributions. No samples."""
