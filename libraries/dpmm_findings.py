"""What was found in dpmm."""

from __future__ import annotations

from libraries.cases import Finding

FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="Constant attributes and missing values are looked up in the data, without noise",
        kind="violation",
        cases=(
            "PrivBayes, an attribute that is constant",
            "PrivBayes, one value missing",
            "MST, one attribute",
        ),
        cause=(
            "processing/table_binner.py, TableBinner.fit: an attribute with a single value is a "
            "static column, dropped before the fit and written back as it was, whatever its declared "
            "domain; an attribute with a missing value gets a column NaN of its own. One row decides "
            "in both cases whether a value can come out at all. All pipelines (PrivBayes, MST, AIM) "
            "use this binner. A hunt found it in MST too: if its only attribute is constant none is "
            "left, and the fit raises."
        ),
        script="dpmm_constant.py",
        report=(
            "TableBinner.fit decides without noise whether a column is static and whether it has "
            "missing values, also where the domain is given. For 20 rows a = p with the domain p, q, "
            "every synthetic row has a = p; with one row a = q more, many tables hold q: {PrivBayes, "
            "an attribute that is constant} at epsilon=1, delta=1e-5 (10⁻³ error probability). With "
            "one row more whose a is missing, tables hold missing values, and none otherwise: "
            "{PrivBayes, one value missing}. A remedy is to take both from the domain: static only if"
            " the domain has one value, a NaN column if the domain says that values may be missing."
        ),
    ),
    Finding(
        title="PrivBayes selects by a score that one record changes more than its sensitivity says",
        kind="violation",
        cases=("PrivBayes, selection",),
        cause=(
            "models/priv_bayes.py: the score is the mutual information in bits, divided by the square"
            " root of the product of the entropies; ExponentialMechanism.compute_delta has the "
            "sensitivity of the mutual information itself, in nats, which is about 2 ln(n/2)/n. For "
            "two attributes that are constant but for one row the normalised score changes from 0 to "
            "1 with that row, at every n."
        ),
        script="dpmm_selection.py",
        report=(
            "MI.__call__ returns (H(x) + H(y) - H(x, y)) / sqrt(H(x) H(y)) with log2, and "
            "ExponentialMechanism uses the sensitivity of the plain mutual information with the "
            "natural logarithm (0.014 for 1,000 rows). With one row (1, 1, 0) beside 1,000 rows (0, "
            "0, c), the score of a and b rises from 0 to 1, and the selected cliques, which store() "
            "writes to disk, give the row away with {PrivBayes, selection} at epsilon=1, delta=1e-5 "
            "(10⁻³ error probability). A remedy is the plain mutual information in nats, or the "
            "sensitivity of the score in use."
        ),
    ),
    Finding(
        title="Without a given domain, categories are those of the data",
        kind="documented limit",
        cases=("PrivBayes, categories inferred",),
        cause=(
            "TableBinner.get_categories logs 'PrivacyLeakage: No categorical domain provided' and "
            "takes the categories from the data. README says of the pipelines that the data domain is"
            " either provided as input or extracted with DP; that holds for the bounds of numbers."
        ),
        known="https://github.com/sassoftware/dpmm/blob/main/src/dpmm/processing/table_binner.py",
        script="dpmm_constant.py",
    ),
)
