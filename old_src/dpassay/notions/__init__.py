"""The papers' methods, one module a notion, the same verbs in each."""
