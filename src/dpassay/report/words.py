"""What a page says in words. Nothing here ever calls a mechanism private."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import claim as claim_of
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.results.profile import Profile
from dpassay.results.rounding import number, rounded_down, rounded_up
from dpassay.results.verdict import UNLEARNED, Verdict

GUARANTEES = {
    Guarantee.EXACT: "exact: it holds for every number of draws, provided they are independent",
    Guarantee.ASYMPTOTIC: "asymptotic: it holds in the limit of many independent draws",
    Guarantee.HEURISTIC: "heuristic: nothing is guaranteed",
}

#: The same of guesses about canaries, whose coins must be fair instead.
_OF_CANARIES = (
    "exact: it holds for every number of canaries, provided a fair coin of its own included each of them "
    "or left it out, and the guesses know of the coins only what the run lets out"
)

NOT_A_BOUND = (
    "Estimates are read off a sample and may lie above or below the truth. Only an audit makes a "
    "statement with an error probability."
)


CERTIFIED = (
    "The estimate is read off a sample and may lie above or below the truth; the certified curves are "
    "bounds, and speak of these inputs alone."
)


#: What the log of a hunt is.
HUNTED = (
    "The pairs that were looked at, with the draws spent on each and the bound that the last look at it "
    "predicted; none where that was a quick one. These draws chose the pair to test; the verdict rests "
    "on others alone."
)


def guarantee(found: Guarantee, about: About) -> str:
    """What stands behind a result, and on what condition."""
    if found is Guarantee.EXACT and about.units == "canaries":
        return _OF_CANARIES
    return GUARANTEES[found]


def percent(share: float) -> str:
    """A probability for people."""
    return f"{level(share, 100)}%"


def small(value: float) -> str:
    """A probability that may be tiny: two digits, powers of ten as people write them."""
    if value == 0 or value >= 1e-3:
        return f"{value:.2g}"
    digits, power = f"{value:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{float(digits):g} × 10{raised}"


_HEADLINES = {
    "violation": "Violation",
    "clear": "No violation detected",
    "blind": "Could not have seen a violation",
}


def headline(verdict: Verdict) -> str:
    """The verdict in one to six words."""
    return _HEADLINES[verdict.tone]


def sentence(verdict: Verdict) -> str:
    """The verdict in one sentence."""
    claim, level = verdict.claim, f"{percent(verdict.confidence)} confidence"
    if verdict.guarantee is not Guarantee.EXACT:
        level += f" ({verdict.guarantee})"
    bound = number(verdict.lower_bound)
    match claim.parameter:
        case "gap":
            found = f"the mechanism falls short of the claimed curve by at least {bound}"
        case "factor":
            found = f"at some order the divergence is at least {bound} times what is claimed"
        case _:
            found = f"{claim.symbol} is at least {bound}"
    if verdict.second is not None:
        found += f" and, at the same time, {second(verdict)}"
    match verdict.tone:
        case "violation":
            return f"The claim of {claim} is false: {found}, with {level}."
        case "blind":
            return (
                f"This audit could not have refuted {claim}: {verdict.blind}. All it certifies, with "
                f"{level}, is that {found}."
            )
        case _:
            return (
                f"The draws do not refute {claim}: all they certify, with {level}, is that {found}."
            )


def second(verdict: Verdict) -> str:
    """The second bound: "δ ≥ 0.08 at ε = 0.5, claimed 0.01", or what it says of ε at a small δ."""
    other, claim = verdict.second, verdict.claim
    if other is None:
        return ""
    if other.at:
        return f"{other}, where the curve claims {number(other.claimed)}"
    return (
        f"{other.symbol} {other.sign} {number(other.lower)} at {claim.symbol} = {number(claim.value)}, "
        f"claimed {number(other.claimed)}"
    )


def estimate(profile: Profile) -> str:
    """A profile in one sentence."""
    said = f"ε is about {number(profile.epsilon)} and μ about {number(profile.mu)}"
    if profile.about.n:
        said += f", estimated from {profile.about.draws}"
    return f"{said}."


def spectrum(found: Spectrum) -> str:
    """A spectrum in one sentence."""
    first, last = found.x[0], found.x[-1]
    ends = number(found.y[0]), number(found.y[-1])
    said = f"δ({number(first)}) is about {ends[0]}, δ({number(last)}) about {ends[1]}"
    if found.about is not None and found.about.n:
        said += f", estimated from {found.about.draws}"
    return f"{said}."


def of_spectrum(found: Spectrum) -> list[tuple[str, str, str]]:
    """The key numbers of a spectrum: at its first ε, at one in the middle and at its last."""
    ends = []
    for k in dict.fromkeys((0, found.x.size // 2, found.x.size - 1)):
        low = "" if found.lower is None else f"at least {rounded_down(found.lower[k])}"
        high = "" if found.upper is None else f"at most {rounded_up(found.upper[k])}"
        level = "" if found.confidence is None else f", with {percent(found.confidence)} confidence"
        sides = " and ".join(filter(None, (low, high)))
        note = f"certified {sides}{level}" if sides else "an estimate"
        ends.append((f"δ at ε = {number(found.x[k])}", f"δ ≈ {number(found.y[k])}", note))
    return ends


def meaning(verdict: Verdict) -> tuple[str, str]:
    """What a verdict means, and what it does not."""
    rate = percent(1 - verdict.confidence)
    if verdict.violated:
        error = {
            Guarantee.EXACT: f"in at most {rate} of audits",
            Guarantee.ASYMPTOTIC: f"in about {rate} of audits with this many draws",
            Guarantee.HEURISTIC: "at a rate nobody has bounded",
        }[verdict.guarantee]
        means = f"If the claim were true, a verdict of violation would come up {error}."
    elif verdict.blind:
        means = (
            "This speaks neither for the claim nor against it: an audit that cannot refute what is false "
            "says nothing by not refuting it."
        )
    else:
        means = (
            "“No violation detected” never means private: other inputs, other events or more draws "
            "may still refute the claim."
        )
    if verdict.remedy:
        return means, f"{verdict.remedy[0].upper()}{verdict.remedy[1:]}."
    return means, _power(verdict)


def _power(verdict: Verdict) -> str:
    least = verdict.smallest_detectable
    canaries = verdict.about.units == "canaries"
    if verdict.violated and canaries:
        return (
            "It speaks of the training that was run and of these canaries; the bound is a floor, and the "
            "truth may be worse."
        )
    if verdict.violated:
        return (
            "It speaks of the pair of inputs that was tested, and so of the mechanism if the claim "
            "calls them neighbours; the bound is a floor, and the truth may be worse."
        )
    if verdict.blind and canaries:
        return "More canaries, another number of guesses or a lower confidence may let it see."
    if verdict.blind:
        return (
            "More draws (dpassay plan says how many), another loss to rank the outputs by, or a lower "
            "confidence may let it see."
        )
    if verdict.unlearned:
        return f"{UNLEARNED[0].upper()}{UNLEARNED[1:]}."
    if least is None:
        return "How large an excess would have been caught was not computed."
    if not math.isfinite(least):
        return "With so few draws no excess, however large, is sure to be caught."
    return f"An actual {verdict.caught}; what is less, or shows on other events, may have gone unnoticed."


def facts(verdict: Verdict) -> list[tuple[str, str, str]]:
    """The key numbers: name, number, what it is."""
    claim, w = verdict.claim, verdict.witness
    least = verdict.smallest_detectable
    draws = verdict.about.units or ("held-out rows" if verdict.about.files else "draws")
    one, other = "first input", "second input"
    if verdict.about.units == "canaries":
        one, other = "included", "left out"
    if verdict.unlearned:
        detectable, note = "not known", "no score separated the two inputs"
    elif least is None:
        detectable, note = "not computed", "by this method"
    elif math.isfinite(least):
        detectable, note = (
            f"{claim.symbol} = {number(least)}",
            "9 times in 10"
            if verdict.about.units
            else f"on an event like {verdict.detectable_on or 'this'}, 9 times in 10",
        )
    else:
        detectable, note = "none", "no excess is sure to be caught"
    return [
        ("Claim", str(claim), "what was tested"),
        (
            "Certified bound",
            f"{claim.symbol} ≥ {number(verdict.lower_bound)}",
            f"with {percent(verdict.confidence)} confidence, {verdict.guarantee}",
        ),
        *_second_fact(verdict),
        ("Smallest detectable", detectable, note),
        ("p-value", f"p ≤ {small(verdict.p_value)}", _p_note(verdict)),
        (f"Witness, {one}", _share(w.hits_p, w.n_p), f"{w.hits_p:,} of {w.n_p:,} {draws}"),
        (f"Witness, {other}", _share(w.hits_q, w.n_q), f"{w.hits_q:,} of {w.n_q:,} {draws}"),
    ]


def _p_note(verdict: Verdict) -> str:
    """What a p-value is."""
    said = "how often draws speak so strongly against a claim that is true, at most"
    return said if verdict.guarantee is Guarantee.EXACT else f"{said} ({verdict.guarantee})"


def checks(verdict: Verdict, file: str) -> list[tuple[str, str]]:
    """How somebody else checks a violation: what to do, and the command that does it."""
    w, found = verdict.witness, []
    if not verdict.violated:
        return []
    if not w.event.live:
        fresh = "--samples FRESH-FIRST FRESH-SECOND" if verdict.about.files else "TARGET"
        if verdict.confidence != 0.95:
            fresh += f" --confidence {level(verdict.confidence)}"
        found.append(
            (
                "On fresh draws: save the result and count its event again. Nothing is searched for, so "
                "nothing is paid for a search.",
                f"dpassay replay {file} {fresh}",
            )
        )
    try:
        same = str(claim_of(str(verdict.claim))) == str(verdict.claim)
    except InvalidInput:
        same = False
    if same and verdict.claim.set_by_events and w.level is not None:
        likelier = "first" if w.p >= w.q else "second"
        counts = f"{w.hits_p} {w.n_p} {w.hits_q} {w.n_q}"
        spent = 1 - verdict.confidence
        shared = (
            ""
            if w.level > 0.999 * spent
            else f", with the {w.level:.3g} that this event had of the error probability {spent:.3g} (so "
            "that its p-value is that of the event alone)"
        )
        found.append(
            (
                f"From the counts alone, the same bound by the same exact test{shared}:",
                f'dpassay counts {counts} --claim "{verdict.claim}" --likelier {likelier} '
                f"--confidence {_without(w.level)}",
            )
        )
    return found


def _without(spent: float) -> str:
    """One minus an error probability, with as many digits as bounds show."""
    return repr(round(1 - spent, 7 - math.floor(math.log10(spent))))


def _second_fact(verdict: Verdict) -> list[tuple[str, str, str]]:
    other, claim = verdict.second, verdict.claim
    if other is None:
        return []
    if other.at:
        note = f"at {other.at}, where the curve claims {number(other.claimed)}; both hold at once"
        return [("And at the same time", f"{other.symbol} ≥ {rounded_down(other.lower)}", note)]
    note = (
        f"at {claim.symbol} = {number(claim.value)}, claimed {number(other.claimed)}; both bounds "
        "hold at once"
    )
    return [("And at the same time", f"{other.symbol} {other.sign} {number(other.lower)}", note)]


def budget(spent: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """How the error probability is spent, a row for all that has the same name and share."""
    often = Counter(spent)
    return [
        (what, f"{share:.3g}" if n == 1 else f"{n} × {share:.3g}")
        for (what, share), n in often.items()
    ]


#: Beside curves, where the witness is about bits.
OF_VALUES = (
    "Estimated curves here are of the values alone. The violation is in the low-order bits of the "
    "numbers, which no curve of values shows: a curve that keeps the claim does not speak against the "
    "verdict."
)


def _share(hits: int, total: int) -> str:
    return f"{100 * hits / total:.3g}%"


def estimates(profile: Profile) -> list[tuple[str, str, str]]:
    """The key numbers of a profile."""
    order, start = 2.0, float(profile.spectrum.x[0])
    return [
        ("Pure DP", f"ε ≈ {number(profile.epsilon)}", "the largest privacy loss"),
        ("Gaussian DP", f"μ ≈ {number(profile.mu)}", "the trade-off curve"),
        (
            f"δ at ε = {number(start)}",
            f"δ ≈ {number(float(profile.spectrum.y[0]))}",
            "the start of the spectrum",
        ),
        (
            f"Rényi, order {number(order)}",
            f"ε ≈ {number(float(profile.renyi(order)))}",
            "the worse direction"
            if order <= profile.renyi_reach
            else "at least; rare outputs decide, which were not seen",
        ),
    ]
