"""A claim against fresh draws of one mechanism: tested, bounded, planned, repeated."""
