"""From a verdict to its cause: which explanations the draws support, and what a leak means for a person.

Training draws choose what is said of which part of the output (`candidate_causes`); testing draws that
were kept say how sure it is (`diagnoses`). `docs/methods/diagnosis.md` has every explanation, its test
and its limits.
"""
