"""What is said of a verdict: as text, in a `ResultView`, and for readers who know no statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import claim as parse_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.event_claims import digits
from dpassay.privacy.provenance import REPLAY, REPLAY_OF_BOUND, Guarantee, level
from dpassay.privacy.tradeoff_claims import CHORDS, RAISED, RAISED_CHORDS
from dpassay.results.estimates import CertifiedEpsilon, SecondBound
from dpassay.results.explanations import explained
from dpassay.results.view import (
    Facts,
    PairTable,
    ResultView,
    Rows,
    assumption_rows,
    capital,
    error_rate,
    file_rows,
    guarantee_text,
    note_rows,
    percent,
    replay_command,
    small,
    with_confidence,
)
from dpassay.results.witness import BITS, Witness
from dpassay.rounding import number, rounded_down
from dpassay.tables import Status

if TYPE_CHECKING:
    from dpassay.results.verdict import Verdict

#: What is said where no score was learned.
UNLEARNED = (
    "no score separated the two inputs better than chance on the training draws (by default a quarter): "
    "outputs hardly differ, these draws are too few, or they differ in a way that this audit does "
    "not look at. If you know what to look at, give it as a feature: features=[…] in Python, --feature "
    "on the command line"
)
#: The end of the note of verdicts that share an error probability.
SHARED = "claims share the error probability equally"
TITLES = {
    Status.VIOLATION: "Violation",
    Status.CLEAR: "No violation detected",
    Status.BLIND: "Too weak: a large violation could have been missed",
}


def text(verdict: Verdict) -> str:
    """The verdict as lines of text."""
    exact, found = f", {verdict.guarantee}" if verdict.violated else "", verdict.certified
    curve = _about_curve(verdict)
    both = verdict.claim.parameter == "gap" and not _no_gap(verdict)
    epsilon = f"{_epsilon(found)}, " if found is not None and both else ""
    shown = f": {epsilon}"
    if verdict.tone is Status.BLIND:  # what was missed is not what is bounded
        shown = f". {capital(verdict.guarantee.doubt) or 'It certifies only '}{epsilon}"
    first = (
        f"{verdict.headline}{shown}{_bound(verdict)} with {level(verdict.confidence)} confidence "
        f"({verdict.chance}{exact})"
    )
    rows = [("claim", note) for note in _about_claim(verdict)]
    rows += [("curve", curve)] if curve else []
    rows += [] if verdict.certified is None else [("canaries", str(verdict.certified))]
    rows += [("blind", verdict.blind)] if verdict.blind else []
    if verdict.second is not None and verdict.certified is None:
        rows.append(("and", f"{second_bound(verdict)}; both hold at once"))
    rows.append(("witness", verdict.witness_text))
    rows += explained(verdict.diagnosis, verdict.belief)
    rows += [*assumption_rows(verdict.about), *_remarks(verdict)]
    return "\n".join([first, *(f"  {name}: {said}" for name, said in rows)])


def view(verdict: Verdict, file: str) -> ResultView:
    """All there is to say; `file` is the name of its JSON in the commands that read it."""
    about, w, certified = verdict.about, verdict.witness, ""
    said = [capital(note) for note in _about_claim(verdict)]
    summary, sentence = [], " ".join([_sentence(verdict), *(f"{one}." for one in said)])
    if verdict.certified is not None:
        certified, curve = capital(str(verdict.certified)), capital(_about_curve(verdict))
        summary = [curve, certified] if curve else [certified]
        sentence = " ".join([sentence, *(f"{one}." for one in summary)])
    summary = said + summary + ([capital(verdict.blind)] if verdict.blind else [])
    if certified and (verdict.second is None or _no_gap(verdict)):  # the bound was said
        summary.append(f"{verdict.guarantee} guarantee; {verdict.chance}")
    else:
        sure = (
            f"with confidence {level(verdict.confidence)} ({verdict.guarantee}; {verdict.chance})"
        )
        summary.append(f"{_bound(verdict)} {sure}")
    if verdict.second is not None and not certified:
        summary.append(f"and {second_bound(verdict)}; both hold at once")
    causes, meaning = explained(verdict.diagnosis, verdict.belief), _meaning(verdict)
    replay = ""
    if verdict.violated and not w.event.live and about.method not in (REPLAY, REPLAY_OF_BOUND):
        replay = replay_command(about, file, verdict.confidence)
    pairs = PairTable(
        "The pairs that were tried, with the bound that training draws predicted for each. The pair with "
        "the largest was tested on fresh draws.",
        ("pair", "predicted bound"),
        [(name, number(bound)) for name, bound in verdict.pairs],
    )
    return ResultView(
        status=verdict.tone,
        headline=verdict.headline,
        summary=summary,
        rows=[*w.rows(about.units), *causes, *file_rows(about), *_remarks(verdict)],
        about=about,
        title=capital(f"{verdict.guarantee.doubt * verdict.violated}{TITLES[verdict.tone]}"),
        sentence=sentence,
        plain=_plain_words(verdict, meaning),
        facts=_facts(verdict),
        witness=str(w.event),
        pair=w.pair or about.pair,
        pairs=pairs,
        guarantee=guarantee_text(verdict.guarantee, about),
        budget=verdict.budget,
        meaning=meaning,
        diagnosis=verdict.diagnosis,
        file=file,
        replay=replay,
        checks=_checks(verdict, replay) if verdict.violated else [],
    )


def _remarks(verdict: Verdict) -> Rows:
    """When it stopped, what it would have detected, and the notes."""
    rows = [] if verdict.draws is None else [("stopped", f"after {verdict.draws:,} draws a side")]
    power = verdict.on_other_events if verdict.unlearned else verdict.power_statement
    rows += [("power", power)] if power else []
    rows += [("note", UNLEARNED)] if verdict.unlearned else []
    bits = verdict.violated and verdict.witness.event.of_representation
    rows += [("note", BITS)] if bits and BITS not in verdict.about.notes else []
    said = _about_claim(verdict)
    return rows + [row for row in note_rows(verdict.about) if row[1] not in said]


def _about_claim(verdict: Verdict) -> list[str]:
    """What the claim says other than a reader may expect: directly below the headline."""
    return [note for note in verdict.about.notes if note in (CHORDS, RAISED_CHORDS, RAISED)]


def _bound(verdict: Verdict) -> str:
    if verdict.claim.parameter != "gap":
        return verdict.bound
    if verdict.certified and _no_gap(verdict):
        return _epsilon(verdict.certified)
    return f"{verdict.bound} (an attack's type II error is that far below the claimed curve)"


def _about_curve(verdict: Verdict) -> str:
    """How the verdict on a curve relates to the ε at one δ beside it; empty where that is clear."""
    found = verdict.certified
    if found is None or found.claimed is None or verdict.claim.point is not None:
        return ""
    at = f"δ = {digits(found.delta)}"
    if not verdict.violated:
        return f"the claimed curve was tested as a whole, not only its ε at {at}"
    if found.epsilon > found.claimed:
        return ""
    return (
        f"{verdict.guarantee.doubt}the claimed curve is refuted as a whole: it makes so many right "
        f"guesses too unlikely. The ε that it claims at {at} is not refuted by itself"
    )


def _epsilon(found: CertifiedEpsilon) -> str:
    return f"ε ≥ {rounded_down(found.epsilon)} at δ = {digits(found.delta)}"


def _no_gap(verdict: Verdict) -> bool:
    """Whether nothing is certified of a curve as a whole, so that the ε at one δ is all there is."""
    return verdict.claim.parameter == "gap" and not verdict.violated and verdict.lower_bound == 0


def _sentence(verdict: Verdict) -> str:
    claim, bound = verdict.claim, rounded_down(verdict.lower_bound)
    doubt, least = verdict.guarantee.doubt, "more than" if verdict.strict else "at least"
    match claim.parameter:
        case "gap":
            found = f"the trade-off curve lies {least} {bound} below the claimed one"
        case "factor":
            found = f"at some order the divergence is {least} {bound} times what is claimed"
        case _:
            found = f"{claim.symbol} is {least} {bound}"
    if verdict.second is not None and verdict.certified is None:
        found += f" and, at the same time, {second_bound(verdict)}"
    found += f", {with_confidence(verdict.confidence, verdict.guarantee)}."
    said_next = verdict.certified is not None and _no_gap(verdict)  # what is certified
    match verdict.tone:
        case Status.VIOLATION:
            false = "is false if what is assumed holds" if doubt else "is false"
            return capital(f"{doubt}the claim of {claim.short} {false}: {found}")
        case Status.BLIND:
            missed = f"This audit could have missed a large violation of {claim.short}: "
            why = _ended(verdict.blind if verdict.event_gone else f"{missed}{verdict.blind}")
            return (
                why if said_next else f"{why} {capital(doubt) or 'It certifies only that '}{found}"
            )
    said = f"The draws do not refute {claim.short}."
    return said if said_next else f"{said} {capital(doubt) or 'They certify only that '}{found}"


def second_bound(verdict: Verdict) -> str:
    """The second bound: "δ ≥ 0.08 at ε = 0.5, claimed 0.01"; empty if there is none."""
    return "" if verdict.second is None else " ".join(_second(verdict.second, verdict))


def _second(other: SecondBound, verdict: Verdict) -> tuple[str, str]:
    """The second bound, and where it holds."""
    claim, claimed = verdict.claim, number(other.claimed)
    if other.at:
        elsewhere = " (the curve is refuted at other points)" * (
            verdict.violated and other.lower < other.claimed
        )
        return other.bound, f"at {other.at}, where the curve claims {claimed}{elsewhere}"
    return other.bound, f"at {claim.symbol} = {number(claim.value)}, claimed {claimed}"


def _facts(verdict: Verdict) -> Facts:
    claim, w = verdict.claim, verdict.witness
    units = verdict.about.units or ("held-out rows" if verdict.about.files else "draws")
    sides = ("included", "left out") if verdict.of_canaries else ("first input", "second input")
    chance = "largest probability of evidence this strong if the claim were true"
    if verdict.guarantee is not Guarantee.EXACT:
        chance += f" ({verdict.guarantee})"
    name = "Not certified" if verdict.guarantee.doubt else "Certified bound"
    sure = f"with {percent(verdict.confidence)} confidence, {verdict.guarantee}"
    facts = [("Claim", claim.short, "what was tested"), (name, _bound(verdict), sure)]
    if verdict.second is not None and not (verdict.certified and _no_gap(verdict)):
        bound, where = _second(verdict.second, verdict)
        facts.append(("And at the same time", bound, f"{where}; both bounds hold at once"))
    facts.append(("Smallest detectable", *detectable(verdict)))
    facts.append(("p-value", f"p ≤ {small(verdict.p_value)}", chance))
    for side, hits, n in zip(sides, (w.hits_p, w.hits_q), (w.n_p, w.n_q), strict=True):
        facts.append((f"Witness, {side}", f"{100 * hits / n:.3g}%", f"{hits:,} of {n:,} {units}"))
    return facts + ([] if verdict.certified is None else verdict.certified.facts)


_EVERY = "the event that was tested happened in all of the draws, or in none"


def detectable(verdict: Verdict) -> tuple[str, str]:
    """The smallest detectable parameter, and on what it would be detected."""
    least = verdict.smallest_detectable
    if least is None:
        if verdict.of_canaries and not (verdict.violated or verdict.blind):
            return "see the notes", "the μ of Gaussian scores that would be detected"
        return "not computed", "by this method"
    if verdict.blind and verdict.remedy and not verdict.of_canaries:
        return "not known", "more draws do not help an audit that is too weak for this reason"
    if not math.isfinite(least):
        return "none", "no excess is detected with probability 0.9"
    where = "" if verdict.about.units else f"{verdict.shown_by}, "
    if verdict.unlearned:
        return "not known", "no score separated the inputs"
    if not verdict.varied:
        return "not known", _EVERY
    return f"{verdict.claim.symbol} = {number(least)}", f"{where}with probability 0.9"


def _meaning(verdict: Verdict) -> tuple[str, str]:
    """What the verdict means; and what it is about, what helps, or what would have been detected."""
    match verdict.tone:
        case Status.VIOLATION:
            about = (
                "this training run and these canaries"
                if verdict.of_canaries
                else "the pair of inputs that was tested, and so about the mechanism if the claim calls "
                "them neighbours"
            )
            rate = error_rate(verdict.confidence, verdict.guarantee, "audits")
            return (
                f"If the claim were true, a verdict of violation would come up {rate}.",
                f"It is about {about}. The bound is a lower bound; the true value may be larger.",
            )
        case Status.BLIND:
            remedy = "More draws (dpassay plan says how many) or another score (loss) may help"
            missed = "" if verdict.event_gone else ": a large violation could have been missed"
            return (
                f"This is evidence neither for the claim nor against it{missed}.",
                f"{capital(verdict.remedy or remedy)}.",
            )
    scope = (
        f"An actual {verdict.power_statement}. A smaller excess, or one on other events, may go "
        "undetected."
    )
    if verdict.unlearned:
        scope = " ".join(f"{capital(one)}." for one in (UNLEARNED, verdict.on_other_events) if one)
    elif verdict.smallest_detectable is None:
        scope = "The smallest detectable excess was not computed."
        if verdict.of_canaries:
            scope = "The notes say what would have been detected."
    elif not verdict.varied:
        scope = f"What would have been detected is not known: {_EVERY}."
    elif not math.isfinite(verdict.smallest_detectable):
        scope = f"{capital(verdict.power_statement)}."
    others = "other inputs, other events or more draws"
    if verdict.of_canaries:
        others = "other canaries, another score or another training run"
    return (
        f"“No violation detected” does not mean private: {others} may still refute the claim.",
        scope,
    )


def _checks(verdict: Verdict, replay: str) -> Rows:
    """How somebody else checks a violation: on fresh draws, and from the counts."""
    w, claim = verdict.witness, verdict.claim
    fresh = (
        "On fresh draws: save the result as JSON and count its event again. Nothing is searched for, so "
        "the whole error probability goes to one test."
    )
    steps = [(fresh, replay)] if replay else []
    try:
        same = str(parse_claim(str(claim))) == str(claim)
    except InvalidInput:
        same = False
    if same and claim.set_by_events and w.level is not None:
        total, share = 1 - verdict.confidence, ""
        if w.level <= 0.999 * total:
            share = (
                f", at the error probability {w.level:.3g} of this event, of {total:.3g} in all (the "
                "p-value is then that of this event alone)"
            )
        # as many digits as bounds show
        confidence = repr(round(1 - w.level, 7 - math.floor(math.log10(w.level))))
        steps.append(
            (
                f"From the counts alone, the same bound by the same exact test{share}:",
                f'dpassay counts {w.hits_p} {w.n_p} {w.hits_q} {w.n_q} --claim "{claim}" '
                f"--likelier {'first' if w.p >= w.q else 'second'} --confidence {confidence}",
            )
        )
    return steps


# --- in plain words


def _plain_words(verdict: Verdict, meaning: tuple[str, str]) -> Rows:
    """What is claimed, what was counted and how sure it is: headings and sentences."""
    claim, w = verdict.claim, verdict.witness
    rows = [("What is claimed", _claimed(claim, verdict.of_canaries))]
    if verdict.of_canaries:
        guessed = (
            "Canaries are records that a coin put into the training data or left out. Which of them were "
            f"in it was guessed from the trained model. {w.event}. Without the model about half of the "
            "guesses would be right."
        )
        rows.append(("What was guessed", guessed))
    elif not verdict.about.units:
        counted = (
            f"Outputs with this property: {w.event}. They came in {w.hits_p:,} of {w.n_p:,} runs "
            f"({_share(w.p)}) on the first input, and in {w.hits_q:,} of {w.n_q:,} ({_share(w.q)}) on "
            "the second."
        )
        rows.append(("What was counted", counted))
        if compared := _compared(claim, verdict.violated, w):
            rows.append(("What the claim allows", compared))
    if not verdict.violated:
        blind = [_ended(capital(verdict.blind))] if verdict.blind else []
        return [*rows, ("What this does not show", " ".join([*blind, *meaning]))]
    rate = error_rate(verdict.confidence, verdict.guarantee, "audits")
    sure = f"A mechanism that keeps its claim is called a violation {rate}."
    rows.append(("How sure this is", sure))
    if verdict.belief is not None:
        rows.append(("What it means for a person", f"{capital(str(verdict.belief))}."))
    return rows


def _claimed(claim: Claim, of_canaries: bool) -> str:
    if claim.point is None:
        how = "how well anybody can tell from one output which of the two inputs was used"
        if of_canaries:
            how = (
                "how well anybody can tell from the model whether a record was in the training data"
            )
        return f"{claim.short} limits {how}."
    epsilon, delta = claim.point
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "∞"
    more = f", plus a probability of {number(delta)}" if delta else ""
    return (
        f"{claim.short}: one person's data may make no set of outputs more than {factor} times as likely"
        f"{more}."
    )


def _compared(claim: Claim, violated: bool, w: Witness) -> str:
    """What the claim allows where the event is likelier, beside what was counted there."""
    rare, often = sorted((w.p, w.q))
    allowed = float(1 - claim.tradeoff(rare))
    if (claim.directional and w.p < w.q) or (violated and often <= allowed):
        return ""
    if rare == 0 and often > allowed and not violated:
        return f"{_share(often)} on one input and none on the other: chance may explain the difference."
    outcome = "is within that"
    if violated:
        outcome = "is more, and chance does not explain the difference"
    elif often > allowed:
        outcome = "is more, but chance may explain the difference"
    return (
        f"With {_share(rare)} on one input, the claim allows {_share(allowed)} on the other. "
        f"{_share(often)} {outcome}."
    )


def _ended(text: str) -> str:
    """A sentence with its full stop, unless it is a question."""
    return text if text.endswith("?") else f"{text}."


def _share(rate: float) -> str:
    """A share of runs in percent, with three digits."""
    return percent(float(f"{rate:.3g}"))
