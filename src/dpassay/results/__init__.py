"""What an analysis returns: frozen records that say what backs them.

An `Estimate` is not a `LowerBound`: they are different types on purpose. A `Verdict` is
"violation", "no violation detected" or "could not have seen a violation", never "private"; a
`Verification` says what holds on the pairs that were looked at, and of no others.
"""
