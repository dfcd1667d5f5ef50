"""What bets on some pairs say together: whether the claim is refuted, the lower bound, the verdict.

The same bets have a wealth against every value of the claim's parameter. A value is refuted once that
has reached 1/γ. The values looked at are fixed beforehand; `lower_bound` is the largest of them up to
which all are refuted, 0 if there is none. If it is above the truth, then the first value on the grid that
is no less than the truth was refuted, by one of these wealths: probability γ at most, at all times
together. The claim counts as violated when all values up to its own are refuted, so that one error
probability covers both. Its p-value can be at most γ before that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from dpassay._typing import FloatArray
from dpassay.bounds import joint_test as joint
from dpassay.bounds.e_values import MomentBet
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import smallest_detectable
from dpassay.errors import NotEnoughDraws
from dpassay.monitoring.e_process import EProcess, Orders
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event
from dpassay.privacy.claims import Claim
from dpassay.privacy.pairs import Pair
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.blindness import Blind, Cause, why_blind
from dpassay.results.verdict import Verdict
from dpassay.results.witness import BITS, Witness
from dpassay.sampling.identity import same_inputs
from dpassay.sampling.samples import Source

#: The values at which a lower bound is looked for: even steps up to what is claimed, then steps of this
#: share of the last, larger where regions are slow to evaluate, or this much where that is tiny.
_BELOW, _STEP, _SLOW, _TINY = 20, 0.01, 0.05, 5e-3
#: The values end here.
_FAR = 100.0
#: So many are looked at together.
_AT_ONCE = 20
#: What every verdict of a monitor says.
ANYTIME = "anytime-valid: it holds wherever the draws stop, for whatever reason"


class ConfidenceSequence:
    """The processes of some pairs, with as many draws each, and what they say together."""

    def __init__(self, claim: Claim, processes: Sequence[EProcess], gamma: float) -> None:
        self.claim, self.processes, self.needed = claim, processes, math.log(1 / gamma)
        self.seen = 0.0  # the log-evidence at the last look
        self.peak = -math.inf  # the largest log-evidence seen
        self.bound = 0.0  # the largest lower bound found
        self.refuted: int | None = None  # draws a side when the claim was
        self._values: set[float] = set()  # those that were refuted: they stay so

    def path(self, theta: float | None = None) -> FloatArray:
        """The log of the average wealth after each row."""
        return _averaged([process.path(theta) for process in self.processes])

    def bring(
        self, batches: Sequence[tuple[Outputs, Outputs]], orders: Sequence[Orders | None]
    ) -> None:
        """Bet on as many draws on each pair, and look.

        If that fails or is interrupted, nothing was brought: no draw is ever bet on twice.
        """
        before = [process.mark() for process in self.processes]
        try:
            for process, (p, q), order in zip(self.processes, batches, orders, strict=True):
                process.bring(p, q, order)
            self.look()
        except BaseException:
            for process, mark in zip(self.processes, before, strict=True):
                process.restore(mark)
            raise

    def look(self) -> None:
        """After draws were brought."""
        path = self.path()
        if not path.size:
            return
        self.seen, self.peak = float(path[-1]), max(self.peak, float(path.max()))
        if self.refuted is None and self.peak >= self.needed:
            below = (value for value in values(self.claim) if value < self.claim.value)
            if all(self._refutes(value) for value in below):
                self.bound = max(self.bound, self.claim.value)
                above = path >= self.needed
                first = int(np.argmax(above)) if above.any() else -1
                self.refuted = int(self.processes[0].ends[first])

    def _refutes(self, value: float) -> bool:
        """Whether a value of the grid is refuted; the next few are looked at too where that is quick."""
        if value not in self._values:
            grid = (one for one in values(self.claim) if one >= value)
            some = list(islice(grid, _AT_ONCE if self.claim.quick else 1))
            paths = _averaged([process.paths(some) for process in self.processes])
            peaks = paths.max(axis=1, initial=-math.inf)
            self._values.update(
                one for one, peak in zip(some, peaks, strict=True) if peak >= self.needed
            )
        return value in self._values

    def lower_bound(self) -> float:
        """The largest value up to which all are refuted, now or before."""
        for value in values(self.claim):
            if value < self.claim.value and self.refuted is not None:
                continue
            if value == self.claim.value and self.refuted is None:
                break
            if value != self.claim.value and not self._refutes(value):
                break
            self.bound = max(self.bound, value)
        return self.bound


def _averaged(paths: Sequence[FloatArray]) -> FloatArray:
    """The log of the average wealth of some processes."""
    if len(paths) == 1:
        return paths[0]
    top = np.max(paths, axis=0)
    return np.asarray(top + np.log(np.mean(np.exp(paths - top), axis=0)))


def values(claim: Claim) -> Iterator[float]:
    """The grid, upwards: it depends on the claim alone."""
    own = claim.value
    if own > 0:
        for k in range(_BELOW):
            yield own * k / _BELOW
    value, step = own, _STEP if claim.quick else _SLOW
    top = min(claim.largest, max(_FAR, 10 * own))
    while value < top:
        yield value
        value += max(step * value, _TINY)


def about_bets(
    sequence: ConfidenceSequence,
    doubts: Iterable[str],
    pair: Pair | None,
    seed: int,
    notes: Sequence[str],
    source: Source | None = None,
) -> About:
    """How it was done."""
    doubts = tuple(doubts)
    names = dict.fromkeys(c.partition.name for t in sequence.processes for c in t.epochs)
    by = f" of cells ranked by {', '.join(names)}" if names else ""
    failures = dict.fromkeys(failure for t in sequence.processes for failure in t.failures)
    return About(
        method=f"bets{by}",
        guarantee=Guarantee.EXACT.given(doubts),
        n=(sequence.processes[0].draws,) * 2,
        seed=seed,
        pair=pair,
        notes=(
            *sequence.claim.notes,
            *notes,
            *doubts,
            *(f"could not be tried: {failure}" for failure in failures),
        ),
        files=() if source is None else source.files,
        digest="" if source is None else source.digest,
    )


def verdict_of(
    sequence: ConfidenceSequence, pairs: Sequence[Pair | None], confidence: float, about: About
) -> Verdict:
    """What the bets say."""
    claim, violated = sequence.claim, sequence.refuted is not None
    ways = [process.path()[-1:].sum() for process in sequence.processes]
    best = int(np.argmax(ways))
    witness = _witness(sequence.processes[best], pairs[best])
    draws = sequence.processes[best].draws
    if not draws:
        raise NotEnoughDraws("there is nothing to judge: no draws of both sides were brought yet")
    pair = pairs[best]
    same = pair is not None and same_inputs(pair)
    counts = witness.hits_p, witness.n_p, witness.hits_q, witness.n_q
    least = math.inf if violated else _detectable(claim, sequence.processes[best], 1 - confidence)
    blind = why_blind(claim, violated, least, counts, sequence.processes[best].failures, same)
    if not violated and not sequence.path().size:
        said = f"{draws} draws a side are training draws, and nothing was bet yet"
        blind = Blind(Cause.FEW_DRAWS, said)
    remarks = [BITS] if violated and witness.event.of_representation else []
    if 1 < witness.n_p < draws:
        bet_on = f"the {witness.n_p:,} draws a side that were bet on with its cells"
        remarks.append(f"the witness counts {bet_on}")
    ends, path = sequence.processes[0].ends, sequence.path()
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind.words,
        blind_cause=blind.cause,
        p_value=min(1.0, math.exp(-max(sequence.peak, 0.0))),
        lower_bound=sequence.lower_bound(),
        confidence=confidence,
        guarantee=about.guarantee,
        witness=witness,
        budget=(("the evidence ever reaching 1/γ, at any number of draws", 1 - confidence),),
        pairs=tuple((str(pair), float(way)) for pair, way in zip(pairs, ways, strict=True))
        if len(pairs) > 1
        else (),
        draws=draws,
        evidence=np.column_stack([ends, path]),
        about=replace(about, notes=(*remarks, *about.notes)),
    )


def _detectable(claim: Claim, process: EProcess, gamma: float) -> float:
    """What an audit of as many draws would detect on the cells' most even event: bets detect no less.

    Of claims about a divergence only whether such draws could refute them at all: ∞ if not.
    """
    n = process.draws
    if joint.p_value(Counts(n, n, 0, n), claim, gamma=gamma) > gamma:
        return math.inf
    if not claim.set_by_events or not process.epochs:
        return claim.value
    known = process.epochs[-1].known
    shares = np.cumsum(known[:, ::-1], axis=1)[:, ::-1] / np.maximum(known.sum(axis=1), 1)[:, None]
    evenest = int(np.argmin(np.abs(shares.mean(axis=0) - 0.5)))
    i, j = (round(n * float(share)) for share in shares[:, evenest])
    if i < j:  # too likely on the second input; a symmetric claim says the same of the complement
        i, j = (n - i, n - j) if claim.symmetric else (j, i)
    return smallest_detectable(Counts(i, n, j, n), claim, gamma)


def _witness(process: EProcess, pair: Pair | None) -> Witness:
    """The event of the bet that gained most, with counts of draws that were bet on with its cells."""
    played = [epoch for epoch in process.epochs if epoch.ends.size]
    if not played:
        none = Event(words="no event was bet on yet")
        n = max(process.draws, 1)
        return Witness(event=none, pair=pair, hits_p=0, n_p=n, hits_q=0, n_q=n)
    epoch = played[-1]
    if len(played) > 1 and epoch.draws < played[-2].draws / 2:
        epoch = played[-2]
    total = np.concatenate([one.gained for one in played]).sum(axis=0)
    cells = epoch.past_counts.shape[1]
    order = [
        k for k in np.argsort(-total, kind="stable") if not isinstance(process.bets[k], MomentBet)
    ]
    bottom, top = epoch.picks[-1, order[0]].tolist()
    at = top if 0 < top < cells else bottom if 0 < bottom < cells else 1
    hits = epoch.hits.sum(axis=0)
    i, j = (int(side[at:].sum()) for side in hits)
    n = epoch.draws
    return Witness(event=epoch.partition.event(at - 1), pair=pair, hits_p=i, n_p=n, hits_q=j, n_q=n)
