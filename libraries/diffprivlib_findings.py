"""What was found in diffprivlib."""

from __future__ import annotations

from libraries.cases import Finding

_BITS = (
    *(
        "Laplace",
        "LaplaceTruncated",
        "LaplaceFolded",
        "LaplaceBoundedDomain",
        "LaplaceBoundedNoise",
    ),
    *("Gaussian", "GaussianAnalytic", "Staircase", "Uniform", "mean", "sum", "var", "std"),
)

FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="Noise added in doubles shows the input in its lowest bits",
        kind="floating point",
        cases=tuple(f"{name}, bits" for name in _BITS),
        cause=(
            "value + noise is computed in doubles, so that the exponent of the lowest set bit of the "
            "output depends on the value. The values themselves keep the claim."
        ),
        known="https://github.com/IBM/differential-privacy-library/issues/94",
        script="diffprivlib_bits.py",
    ),
    Finding(
        title="nanmean, nanvar, nanstd and nansum are calibrated to all records, not to those that count",
        kind="violation",
        cases=(
            "nanmean, nine NaN rows",
            "nanvar, eight NaN rows",
            "nanstd, eight NaN rows",
            "nansum, bounds far from zero",
        ),
        cause=(
            "The sensitivity is that of a statistic of array.size records, while the statistic is of "
            "the records that are not NaN: with nine of ten records NaN, the mean changes ten times as "
            "much as the noise is made for. A sum changes by up to the larger bound when a record "
            "becomes NaN, and not by the distance of the bounds. If all records are NaN, so is the "
            "mean, the variance and the standard deviation."
        ),
        script="diffprivlib_nanmean.py",
        report=(
            "tools.nanmean(array, bounds=(lower, upper), epsilon=ε) adds noise for a sensitivity of "
            "(upper - lower) / array.size, but np.nanmean divides by the number of records that are "
            "not NaN. For [0, nan × 9] and [1, nan × 9], which differ in one record, the means are 0 "
            "and 1 and the noise has scale 0.1/ε: the two are told apart with {nanmean, nine NaN rows} "
            "at epsilon=1 (10⁻³ error probability). nanvar and nanstd are alike; nansum has "
            "sensitivity upper - lower, but a record that becomes NaN changes the sum by up to "
            "max(|lower|, |upper|). A remedy is to replace NaN by a constant within the bounds before "
            "a statistic of fixed size is taken, or to calibrate to one record and spend a part of ε "
            "on the count."
        ),
    ),
    Finding(
        title="A NaN row decides the output",
        kind="violation",
        cases=("mean, a NaN row", "median, a NaN row"),
        cause="If a record is NaN the output is NaN, always; if none is, never.",
        known="https://github.com/IBM/differential-privacy-library/issues/80",
        script="diffprivlib_nan_row.py",
    ),
    Finding(
        title="Geometric rounds integers beyond 2**53 before it adds noise",
        kind="violation",
        cases=("Geometric, beyond 2**53",),
        cause=(
            "mechanisms/geometric.py adds an integer and noise that is a double, so that the sum is a "
            "double: 2**53 + 1 is taken for 2**53, and 2**53 + 3 for 2**53 + 4. Integers that differ by "
            "1 become doubles that differ by 2, and more for larger integers. The pair made by hand, "
            "2**53 and 2**53 + 1, becomes one double and shows nothing; a hunt found one that does."
        ),
        script="diffprivlib_geometric.py",
        by_hunt=True,
        report=(
            "Geometric(epsilon=1, sensitivity=1).randomise(value) computes int(np.round(value + sgn * "
            "np.floor(…))): np.floor returns a double, and so does the sum. For value beyond 2**53 the "
            "integer is rounded first: 2**53 + 1 and 2**53 + 2 are taken for 2**53 and 2**53 + 2, which "
            "is a change of 2 with noise for 1: {Geometric, beyond 2**53, hunted} (10⁻³ error "
            "probability). At 2**60 neighbours can differ by 256. A remedy is to convert the noise to "
            "int before the sum: value + int(sgn * np.floor(…))."
        ),
    ),
    Finding(
        title="GaussianNB adds noise to a sum for the width of the bounds, not for their size",
        kind="violation",
        cases=("GaussianNB, bounds far from zero",),
        cause=(
            "The sum of a class gets noise of sensitivity upper − lower and is cut to the bounds times "
            "the noisy count. A record that changes its class changes both sums by up to the larger "
            "bound, which is a thousand times more if the bounds are (1000, 1001)."
        ),
        script="diffprivlib_gaussian_nb.py",
        report=(
            "GaussianNB._update_mean_variance adds Laplace noise of sensitivity upper - lower to "
            "temp_x.sum(). That is right while the number of records of a class is fixed, but a record "
            "that is replaced by one with another label adds a term to the sum of one class and "
            "removes one from another; each changes by up to max(|lower|, |upper|). With bounds=(1000, "
            "1001), epsilon=1 and five records, one of which changes its label, the counts and means "
            "tell the two data sets apart with {GaussianNB, bounds far from zero} (10⁻³ error "
            "probability). A remedy is to sum x - lower or x minus the middle of the bounds: the "
            "sensitivity is then at most upper - lower."
        ),
    ),
    Finding(
        title="LinearRegression takes the lower bound for the size of a feature",
        kind="violation",
        cases=("LinearRegression without intercept",),
        cause=(
            "The sum of squares of a feature gets noise for the square of bounds_X[0], the lower "
            "bound, twice named where both bounds are meant. With a lower bound of 0 and no intercept "
            "it gets none, and one record changes the scale of the slope."
        ),
        known="https://github.com/IBM/differential-privacy-library/issues/105",
        script="diffprivlib_regression.py",
    ),
    Finding(
        title="The set of classes is read off the data without a warning",
        kind="violation",
        cases=("GaussianNB, a class of one", "LogisticRegression, a class of one"),
        cause=(
            "fit takes classes_ from np.unique(y), so that a class that only one record has shows in "
            "the shape of the fitted model; with one class in all LogisticRegression raises, as a hunt "
            "found too. RandomForestClassifier has a parameter `classes` and "
            "warns; fit of these models has neither. GaussianNB.partial_fit has `classes`: see the "
            "next finding."
        ),
        script="diffprivlib_classes.py",
        report=(
            "GaussianNB and LogisticRegression take classes_ from np.unique(y). If a single record "
            "carries a label that no other has, replacing it changes the shape of theta_ and coef_, so "
            "that the model tells with certainty whether the record was there. RandomForestClassifier "
            "and DecisionTreeClassifier solve this with the parameter `classes` and raise a "
            "PrivacyLeakWarning without it; the same would serve here, with noise for the classes that "
            "no record has."
        ),
    ),
    Finding(
        title="A declared class without records gets no noise",
        kind="violation",
        cases=("GaussianNB.partial_fit, a declared class of one",),
        cause=(
            "GaussianNB.partial_fit(classes=…) fixes the shape of the model, but counts, means and "
            "variances are made for np.unique(y): a class without records has count 0 and mean 0 "
            "exactly, and with one record both are noisy."
        ),
        script="diffprivlib_declared.py",
        report=(
            "GaussianNB._partial_fit loops over np.unique(y), so that a class that was declared in "
            "partial_fit(classes=…) and has no record keeps class_count_ = 0 and theta_ = 0, without "
            "noise. One record of that class changes both with certainty: an audit certifies "
            "{GaussianNB.partial_fit, a declared class of one} at epsilon=1 (10⁻³ error probability). "
            "A remedy is to loop over classes_, with noisy counts and means for all of them."
        ),
    ),
    Finding(
        title="The number of records is public",
        kind="other relation",
        cases=("sum at 100, one record removed", "count_nonzero, one record added"),
        cause=(
            "Outputs are cut to what the number of records allows (lower × size to upper × size): the "
            "guarantee is for a record replaced, not for one added or removed. The documentation names "
            "no relation."
        ),
        script="diffprivlib_relation.py",
    ),
    Finding(
        title="Histograms are for a record added or removed",
        kind="other relation",
        cases=("histogram, one record replaced",),
        cause=(
            "Each bin gets noise of sensitivity 1 at ε: right for a record added, 2ε for one replaced, "
            "which changes two bins. The other tools are for a record replaced, so that their ε do not "
            "add up under one relation."
        ),
        script="diffprivlib_relation.py",
    ),
    Finding(
        title="KMeans leaves the centre of an empty cluster without noise",
        kind="violation",
        cases=("KMeans*",),
        cause=(
            "Centres start at random, at least 0.25 apart here. That of a cluster without records is "
            "skipped, so that the upper centre stays above 0.375; once a record is in the cluster its "
            "centre gets noise and may be anywhere."
        ),
        script="diffprivlib_kmeans.py",
        report=(
            "KMeans._update_centers skips clusters that no record is nearest to (`if cluster not in "
            "labels: continue`), so that their centres keep the values of the initialisation, while "
            "others get noise. Whether a centre moved shows whether its cluster is empty: with five "
            "records at 0, bounds (0, 1), two clusters and epsilon=1, both centres are never below "
            "0.375; with one more record at 1 they are in one fit of six. A remedy is to treat a "
            "cluster without records like any other, with count and sum 0. (Issue #104 lists other "
            "points of this model.)"
        ),
    ),
    Finding(
        title="Trees are for a record added or removed",
        kind="other relation",
        cases=(
            "DecisionTreeClassifier, one record replaced",
            "RandomForestClassifier, one record replaced",
        ),
        cause=(
            "A leaf picks its class by permute-and-flip with `monotonic=True`, which holds if all "
            "counts change in one direction: right for a record added, up to 2ε for one replaced."
        ),
        script="diffprivlib_relation.py",
    ),
)
