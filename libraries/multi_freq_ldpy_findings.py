"""What was found in Multi-Freq-LDPy."""

from __future__ import annotations

from libraries.cases import Finding

FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="Subset selection sends the true value first",
        kind="violation",
        cases=("SS as it is sent*",),
        cause=(
            "SS_Client sets sub_set[0] = input_data if the true value is in the subset, and appends "
            "the others: the subset is an array, and its order is sent. The first element is the true "
            "value with probability p = s eᵋ/(s eᵋ + k − s), s the size of the subset, and any other "
            "value with probability (1 − p)/(k − 1): the ratio is eᵋ s (k − 1)/(k − s), which is above "
            "eᵋ for every s > 1. That the true value is in second place never happens. The sorted "
            "subset keeps the claim. SPL_SS_Client and SMP_SS_Client call the same function."
        ),
        script="multi_freq_ldpy_subset.py",
        report=(
            "SS_Client returns an array whose first element is the true value whenever the subset "
            "holds it. Subset selection is private as a set; the order tells more. With k = 8 and ε = "
            "1 the subset has two elements, and the second is never the true value: an audit of what "
            "is sent certifies {SS as it is sent, ε = 1, k = 8} (10⁻³ error probability), and nothing "
            "above ε = 1 if the subset is sorted first. A remedy is np.random.permutation(sub_set), or "
            "np.sort."
        ),
    ),
    Finding(
        title="Random sampling plus fake data is ε-LDP for a change of one attribute, not of the tuple",
        kind="violation",
        cases=("RS+FD of *",),
        cause=(
            "The sampled attribute is randomised with ε' = ln(d (eᵋ − 1) + 1), as if sampling one of d "
            "attributes hid the others. But the fake values of the others are uniform, the report is "
            "the mixture (1/d) Σⱼ GRRⱼ(yⱼ | xⱼ) Πᵢ≠ⱼ 1/kᵢ, and if x and x' differ in every attribute "
            "(with equal k) the report y = x is p/q = e^ε' times as likely on x. For d = 3 and ε = 1 "
            "that is ε' = 1.82. With unequal domains, and with fake data from random unary vectors, a "
            "change of one attribute is enough."
        ),
        script="multi_freq_ldpy_fake.py",
        report=(
            "The RSpFD clients use the amplified ε' = ln(d (eᵋ − 1) + 1). Local differential privacy "
            "compares any two inputs, also two tuples that differ in all attributes. For RS+FD[GRR] "
            "with equal domains P(y | x) is proportional to Σⱼ GRR(yⱼ | xⱼ), so that y = x is e^ε' "
            "times as likely on x as on a tuple that differs in every attribute: the tight guarantee "
            "is ε', not ε. At ε = 1 and d = 3 (ε' = 1.82) an audit certifies {RS+FD of GRR, ε = 1}, of "
            "SUE-z {RS+FD of SUE-z, ε = 1} and of ADP {RS+FD of ADP, ε = 1} (10⁻³ error probability). "
            "A remedy is to state the guarantee for one attribute (and equal domains), or to use ε "
            "without amplification."
        ),
    ),
    Finding(
        title="The permanent answer is drawn anew in every call",
        kind="violation",
        cases=("L-*, 8 reports, *",),
        cause=(
            "The longitudinal clients promise eps_perm for an unlimited number of reports, which needs "
            "one permanent answer for a value that is kept. L_GRR_Client and the others draw both "
            "rounds in every call and return the second alone; there is no argument for an answer that "
            "was kept. Reports of one value are then independent, and t of them are t · eps_1 private."
        ),
        script="multi_freq_ldpy_reports.py",
        report=(
            "eps_perm is documented as upper bound of privacy guarantee (infinity reports). Each call "
            "of L_*_Client draws a new permanent answer, and nothing can be kept between calls, so "
            "that a user who reports the same value t times spends t · eps_1. With eps_perm = 2, eps_1 "
            "= 1 and eight reports an audit certifies {L-GRR, 8 reports, ε∞ = 2, ε₁ = 1} for L-GRR and "
            "{L-SUE, 8 reports, ε∞ = 2, ε₁ = 1} for L-SUE (10⁻³ error probability). A remedy is to "
            "return the permanent answer, or to take it as an argument, and to say that a call is the "
            "first report of a value."
        ),
    ),
    Finding(
        title="Laplace noise of histogram encoding shows the value in its lowest bits",
        kind="floating point",
        cases=("HE, *, bits",),
        cause="np.random.laplace is added in doubles: which numbers can come out depends on 0 or 1.",
        known="https://doi.org/10.1145/2382196.2382264",
        script="multi_freq_ldpy_bits.py",
    ),
)
