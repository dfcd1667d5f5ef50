"""Mechanisms of one's own under audit, to copy from: DP-SGD, many models at once."""
