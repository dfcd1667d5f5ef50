"""Audits of draws as they come in, which may stop at any time."""
