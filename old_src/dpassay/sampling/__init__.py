"""Sampling: draws from seeds, files and stores, checked for dependence and dealt out once."""
