"""Membership inference: claims tested with canaries of one training run, and rates of attacks."""
