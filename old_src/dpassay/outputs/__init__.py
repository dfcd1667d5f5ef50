"""What came out: the canonical form of outputs, the keys they fall into, and events."""
