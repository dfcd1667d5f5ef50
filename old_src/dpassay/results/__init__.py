"""Results of analyses: frozen records that say what backs them, with JSON and a `ResultView` each.

An `Estimate` is not a `LowerBound` (a lower confidence bound): they are different types on purpose. A
`Verdict` is "violation", "no violation detected" or "too weak", never "private". A
`Verification` says what holds on the pairs that were given, and on no others.
"""
