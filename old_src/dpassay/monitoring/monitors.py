"""Audits that may be looked at whenever one likes, and stopped: `Monitor` and `monitor`.

The evidence against the claim is the wealth of bets (`e_process`), averaged over pairs of inputs where
there are several. If the claim is true it ever reaches 1/γ with probability at most γ (Ville), so it
is a verdict whenever the draws stop coming, for whatever reason.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.library_objects import claim_on
from dpassay.bounds import joint_test as joint
from dpassay.bounds.e_values import MomentBet
from dpassay.bounds.ordering import Counts
from dpassay.bounds.power import smallest_detectable
from dpassay.errors import BadOutput, DependenceWarning, InvalidInput, NotEnoughDraws, warn
from dpassay.monitoring.e_process import BettingEpoch, ConfidenceSequence, Drawn, EProcess
from dpassay.outputs.canonical import Outputs, all_of, check_containers, concatenate
from dpassay.outputs.events import Event
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import About, Guarantee
from dpassay.privacy.relations import Pair, Relation, as_pair
from dpassay.records import Record
from dpassay.results.blindness import Blind, Cause, why_blind
from dpassay.results.verdict import Verdict
from dpassay.results.witness import BITS, Witness
from dpassay.rounding import number
from dpassay.sampling.budget import totals
from dpassay.sampling.dependence import symptoms
from dpassay.sampling.draw import Sampling, Seed, as_sampling, seed_of, stream
from dpassay.sampling.identity import same_inputs
from dpassay.sampling.job import by_calls
from dpassay.sampling.progress import Progress
from dpassay.sampling.repeated_draws import AGAIN, SeenBatches
from dpassay.sampling.samples import Batch, Source, sources

#: The first update with as many draws on either side is looked at for signs of dependence.
_LOOK = 100
#: How many more draws are made at a time, as a share of those made, and at least: where every draw is a
#: call; where one call makes many, which costs less than to look at them; and with workers for which a
#: pool must be made each time.
_CALLS, _ARRAYS, _POOLS = (0.1, 8), (0.25, 16), (0.5, 8)
#: What every verdict of a monitor says.
_ANYTIME = "anytime-valid: it holds wherever the draws stop, for whatever reason"


@dataclass(frozen=True, eq=False, kw_only=True)
class MonitorState(Record):
    """A monitor, written down."""

    claim: Claim
    confidence: float
    seed: int
    loss: str
    pair: Pair | None
    draws: int
    updates: int
    epochs: tuple[BettingEpoch, ...]
    kept: tuple[Drawn | None, Drawn | None]
    waiting: tuple[Drawn | None, Drawn | None]
    containers: tuple[str, ...]
    peak: float
    bound: float
    refuted: int | None
    looked: bool
    doubts: tuple[str, ...]
    brought: tuple[int, ...] = ()

    def _validate(self) -> None:
        for name in ("seed", "draws", "updates"):
            checks.whole(name, getattr(self, name), at_least=0, at_most=math.inf)
        for name in ("peak", "bound"):
            checks.real(name, getattr(self, name), finite=False)
        if self.refuted is not None:
            checks.whole("refuted", self.refuted, at_least=0, at_most=self.draws)


class Monitor:
    """Evidence against a claim as draws come in, valid whenever one looks and whyever one stops.

    claim       a claim, or its text ("eps=1, delta=1e-5")
    confidence  one minus the probability that a true claim is ever refuted
    rng         the seed of the shuffles and of what is learned
    loss        the score of the outputs, as for `audit`: "auto", "values" (without the floating-point
                representation), a name
    pair        the two inputs, for the record

    Draws of the two inputs must be independent runs, and how many are brought at once must not depend on
    what they are: what is brought at once is shuffled.

    >>> import dpassay as dp, numpy as np
    >>> rng, watch = np.random.default_rng(0), dp.Monitor("eps=0.5")
    >>> while not watch.violated:
    ...     watch.update(rng.laplace(size=20), 1 + rng.laplace(size=20))
    >>> watch.draws < 1000, watch.e_value >= 20, watch.lower_bound >= 0.5
    (True, True, True)
    >>> dp.Monitor.from_json(watch.to_json()).e_value == watch.e_value
    True
    """

    def __init__(
        self,
        claim: Claim | str,
        confidence: float = 0.95,
        rng: Seed = 0,
        *,
        loss: Any = "auto",
        pair: tuple[Any, Any] | Pair | None = None,
    ) -> None:
        self.claim = as_claim(claim)
        self.confidence = checks.confidence(confidence)
        self.seed, self.loss = seed_of(rng), loss
        self.pair = None if pair is None else as_pair(pair)
        self.doubts: tuple[str, ...] = ()
        self._process = EProcess(self.claim, loss, self.seed)
        self._sequence = ConfidenceSequence(self.claim, [self._process], 1 - self.confidence)
        self._waiting: list[Outputs | None] = [None, None]
        self._containers: frozenset[str] = frozenset()
        self._updates, self._looked = 0, False
        self._brought = SeenBatches()

    def update(self, p_outputs: Any = (), q_outputs: Any = ()) -> None:
        """Bring draws on the first and on the second input; as many as there are of either, or none."""
        sides = [_read(name, given) for name, given in (("p", p_outputs), ("q", q_outputs))]
        seen = self._containers.union(*(side.containers for side in sides if side is not None))
        try:
            check_containers(seen)
        except BadOutput as error:
            raise InvalidInput(f"these outputs do not go with earlier ones: {error}") from None
        self._containers = seen
        self._doubt(sides)
        for index, side in enumerate(sides):  # put behind those that wait, in a random order
            if side is not None:
                rng = stream(self.seed, 1 << 21, self._updates, index)
                before, new = self._waiting[index], side[rng.permutation(len(side))]
                self._waiting[index] = new if before is None else concatenate([before, new])
        self._updates += 1
        first, second = self._waiting
        if first is None or second is None:
            return
        size = min(len(first), len(second))
        left = [side[size:] if len(side) > size else None for side in (first, second)]
        self._sequence.bring([(first[:size], second[:size])])
        self._waiting = left

    def _doubt(self, sides: Sequence[Outputs | None]) -> None:
        """Look at the draws in the order they came, once; and whether they were brought before."""
        if self._brought.again(sides) and AGAIN not in self.doubts:
            self.doubts = (*self.doubts, AGAIN)
            warn(AGAIN, DependenceWarning)
        p, q = sides
        if self._looked or p is None or q is None or min(len(p), len(q)) < _LOOK:
            return
        signs = tuple(symptoms(p, q))
        self._looked, self.doubts = True, (*self.doubts, *signs)
        for text in signs:
            warn(text, DependenceWarning)

    @property
    def draws(self) -> int:
        """Draws a side that were used."""
        return self._process.draws

    @property
    def waiting(self) -> tuple[int, int]:
        """Draws of either side that wait for one of the other, not looked at."""
        first, second = (0 if side is None else len(side) for side in self._waiting)
        return first, second

    @property
    def e_value(self) -> float:
        """The e-value against the claim: the e-process of the paired draws, now.

        If the claim is true, its mean is at most 1 at every stopping time that the paired draws decide;
        draws that wait for a partner (`waiting`) must not influence it. It can fall again.
        `violated` has no such condition and stays true.
        """
        return math.exp(min(self._sequence.seen, 700.0))

    @property
    def largest_e_value(self) -> float:
        """The largest e-value so far.

        The claim is refuted once it has reached 1/(1 − confidence), and smaller parameters too.
        """
        return math.exp(min(max(self._sequence.peak, 0.0), 700.0))

    @property
    def log_evidence(self) -> tuple[FloatArray, FloatArray]:
        """Draws a side, and the log of the wealth with so many of them."""
        return self._process.ends.astype(float), self._sequence.path()

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted, now or before."""
        return self._sequence.refuted is not None

    @property
    def refuted_at(self) -> int | None:
        """Draws a side when it was; None if it is not."""
        return self._sequence.refuted

    @property
    def lower_bound(self) -> float:
        """The claim's parameter is at least this: with the confidence, at all times together."""
        return self._sequence.lower_bound()

    def verdict(self) -> Verdict:
        """Where it stands."""
        waits = [f"{n:,} draws wait for one of the other side" for n in self.waiting if n]
        pairs = [self.pair]
        return _verdict(self._sequence, pairs, self.confidence, self.seed, self.doubts, waits)

    def chart(self) -> Any:
        """The log of the evidence against draws, and where the claim is refuted."""
        from dpassay import charts

        return charts.evidence(*self.log_evidence, limit=self._sequence.needed)

    def __repr__(self) -> str:
        said = f"e = {self.e_value:.3g}, at most {self.largest_e_value:.3g} so far"
        said += f", violated after {self.refuted_at:,}" if self.violated else ""
        return f"Monitor({self.claim}, {self.draws:,} draws a side, {said})"

    def to_json(self) -> str:
        """All of it, to go on elsewhere as if nothing had happened."""
        t, s = self._process, self._sequence
        if not isinstance(self.loss, str) or any(c.partition.live for c in t.epochs):
            raise InvalidInput(
                f"loss={checks.shown(self.loss)} ranks outputs by what only this process can evaluate; "
                'a monitor with loss="values" can be written down'
            )
        kept = tuple(Drawn.of(concatenate(side)) if side else None for side in t.kept)
        waiting = tuple(None if side is None else Drawn.of(side) for side in self._waiting)
        return MonitorState(
            claim=self.claim,
            confidence=self.confidence,
            seed=self.seed,
            loss=self.loss,
            pair=self.pair,
            draws=t.draws,
            updates=self._updates,
            epochs=tuple(t.epochs),
            kept=(kept[0], kept[1]),
            waiting=(waiting[0], waiting[1]),
            containers=tuple(sorted(self._containers)),
            peak=s.peak,
            bound=s.bound,
            refuted=s.refuted,
            looked=self._looked,
            doubts=self.doubts,
            brought=tuple(sorted(self._brought.digests)),
        ).to_json()

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """The monitor that was written down by `to_json`."""
        state = MonitorState.from_json(text)
        found = cls(state.claim, state.confidence, state.seed, loss=state.loss, pair=state.pair)
        process, sequence = found._process, found._sequence
        process.draws, process.epochs = state.draws, list(state.epochs)
        for kept, side in zip(process.kept, state.kept, strict=True):
            kept[:] = [] if side is None else [side.outputs()]
        sequence.peak, sequence.bound, sequence.refuted = state.peak, state.bound, state.refuted
        found._waiting = [None if side is None else side.outputs() for side in state.waiting]
        found._containers, found._updates = frozenset(state.containers), state.updates
        found._looked, found.doubts = state.looked, state.doubts
        found._brought = SeenBatches(state.brought)
        if not process.consistent():
            raise InvalidInput("the evidence in this JSON does not follow from its counts")
        sequence.decide()
        return found


def monitor(
    mechanism: Any,
    pairs: Any = None,
    claim: Claim | str | None = None,
    *,
    max_n: int | None = None,
    confidence: float = 0.95,
    loss: Any = "auto",
    features: Any = None,
    relation: Relation | str | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verdict:
    """Draw until a claim is refuted, at most `max_n` times a side; valid wherever it stops.

    The probability that a true claim is ever refuted is at most 1 − confidence. Few draws refute a claim
    that is far from the truth, and no number of draws has to be fixed beforehand: Ctrl-C ends it with a
    verdict too.

    mechanism  a mechanism, or samples (then leave `pairs` out, and `max_n` for all of them)
    pairs      a pair of neighbouring inputs, or several: each is bet on, and the evidence is the average
    claim      a claim, or its text ("eps=1, delta=1e-5")
    max_n      the most draws per side per pair
    loss       the score of the outputs, as for `audit`: "auto", "values" (without the floating-point
               representation), a name
    features   functions of one output, as for `audit`
    relation   what makes the inputs neighbours ("add_remove", "replace", …), for the record

    >>> import dpassay as dp
    >>> verdict = dp.monitor(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.5", max_n=20_000, rng=0)
    >>> verdict.violated, verdict.draws < 2000
    (True, True)
    """
    wanted = as_claim(claim_on(claim, mechanism, pairs))
    gamma = 1 - checks.confidence(confidence)
    how = replace(as_sampling(sampling), progress=False)  # one line for all draws together
    found = list(
        sources(mechanism, pairs, rng=rng, sampling=how, relation=relation, features=features)
    )
    if not found:
        raise InvalidInput("there is no pair to look at: the iterator is empty")
    most = totals(found[0], max_n, least=1, name="max_n")
    processes = [
        EProcess(wanted, loss, seed_of(source.rng(1 << 23)), source.pair) for source in found
    ]
    sequence = ConfidenceSequence(wanted, processes, gamma)
    # an executor is there already: there the looks, and the verdict, are those of one core
    share, least = _pace(found[0], how)
    notes, limit, draws = [], min(most), 0
    doubts: dict[str, None] | None = None
    with Progress(limit, "monitoring", None if sampling is None else sampling.progress) as progress:
        try:
            while sequence.refuted is None and draws < limit:
                size = min(max(least, int(share * draws)), limit - draws)
                drawn = [source.deal((size, size)) for source in found]
                sequence.bring(
                    [_shuffled(one, s, draws) for one, s in zip(drawn, found, strict=True)]
                )
                draws += size
                if doubts is None and size >= _LOOK:
                    doubts = dict.fromkeys(symptoms(drawn[0].p, drawn[0].q))
                    for text in doubts:
                        warn(text, DependenceWarning)
                progress.label = f"monitoring, log-evidence {sequence.seen:+.2f}"
                progress.advance(size)
        except KeyboardInterrupt:
            notes.append(f"interrupted after {draws:,} of {limit:,} draws a side")
            print(f"dpassay: {notes[-1]}; now the verdict on those", file=sys.stderr)
    if len(found) > 1:
        notes.append(f"the evidence is the average over {len(found)} pairs")
    first, pairs_of = found[0], [source.pair for source in found]
    doubts = dict.fromkeys([*(doubts or ()), *(d for one in found for d in one.doubts)])
    notes += [note for note in first.notes if note not in doubts]
    return _verdict(sequence, pairs_of, confidence, first.seed, doubts, notes, first)


def _shuffled(batch: Batch, source: Source, draws: int) -> tuple[Outputs, Outputs]:
    """Both sides in random orders, which depend on the seed and on how many draws came before."""
    p, q = (
        side[source.rng((1 << 24) + 2 * draws + k).permutation(len(side))]
        for k, side in enumerate((batch.p, batch.q))
    )
    return p, q


def _pace(source: Source, how: Sampling) -> tuple[float, int]:
    """How many more draws are made at a time, as a share of those made, and at least."""
    if how.workers > 1:
        return _POOLS
    mechanism = getattr(source, "mechanism", None)
    return _CALLS if by_calls(mechanism, how.on_error == "outcome") else _ARRAYS


def _read(name: str, given: Any) -> Outputs | None:
    """Outputs in canonical form; None if there are none."""
    try:
        found = all_of(given)
    except BadOutput as error:
        raise InvalidInput(f"{name}_outputs cannot be read as outputs: {error}") from None
    return found if len(found) else None


def _verdict(
    sequence: ConfidenceSequence,
    pairs: Sequence[Pair | None],
    confidence: float,
    seed: int,
    doubts: Iterable[str],
    notes: Sequence[str],
    source: Source | None = None,
) -> Verdict:
    """What the bets say."""
    claim, violated, processes = sequence.claim, sequence.refuted is not None, sequence.processes
    evidence = [process.path()[-1:].sum() for process in processes]
    best = int(np.argmax(evidence))
    process, pair = processes[best], pairs[best]
    draws, path, doubts = process.draws, sequence.path(), tuple(doubts)
    if not draws:
        raise NotEnoughDraws("there is nothing to judge: no draws of both sides were brought yet")
    witness = _witness(process, pair)
    counts = witness.hits_p, witness.n_p, witness.hits_q, witness.n_q
    least = math.inf if violated else _detectable(claim, process, 1 - confidence)
    same = pair is not None and same_inputs(pair)
    blind = why_blind(claim, violated, least, counts, process.failures, same)
    if not violated and not path.size:
        said = f"{draws} draws a side are training draws, and nothing was bet yet"
        blind = Blind(Cause.FEW_DRAWS, said)
    remarks = [BITS] if violated and witness.event.of_representation else []
    if not violated and not blind.words and claim.set_by_events:
        remarks.append(
            f"an audit of as many draws would have detected {claim.symbol} = {number(least)} or more "
            "with probability 0.9, at best; a monitor is unlikely to detect a smaller one"
        )
    if 1 < witness.n_p < draws:
        remarks.append(
            f"the witness is counted on {witness.n_p:,} of the {draws:,} draws a side; the others were "
            "training draws, or bets on them used other sets of outputs"
        )
    failures = dict.fromkeys(failure for one in processes for failure in one.failures)
    untried = [f"could not be tried: {failure}" for failure in failures]
    names = dict.fromkeys(epoch.partition.name for one in processes for epoch in one.epochs)
    guarantee = Guarantee.EXACT.downgraded(doubts)
    by_pair: tuple[tuple[str, float], ...] = ()
    if len(pairs) > 1:
        by_pair = tuple((str(p), float(e)) for p, e in zip(pairs, evidence, strict=True))
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind.words,
        blind_cause=blind.cause,
        p_value=min(1.0, math.exp(-max(sequence.peak, 0.0))),
        lower_bound=sequence.lower_bound(),
        confidence=confidence,
        guarantee=guarantee,
        witness=witness,
        budget=(("the evidence ever reaching 1/γ, at any number of draws", 1 - confidence),),
        pairs=by_pair,
        draws=draws,
        evidence=np.column_stack([processes[0].ends, path]),
        about=About(
            method="bets" + (f" of cells ranked by {', '.join(names)}" if names else ""),
            guarantee=guarantee,
            n=(processes[0].draws,) * 2,
            seed=seed,
            pair=pairs[0],
            notes=(*remarks, *claim.notes, _ANYTIME, *notes, *doubts, *untried),
            files=() if source is None else source.files,
            digest="" if source is None else source.digest,
        ),
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
    """The event of the bet that gained most, counted on the draws of its epoch."""
    played = [epoch for epoch in process.epochs if epoch.ends.size]
    if not played:
        n = max(process.draws, 1)
        return Witness.of(Event(words="no event was bet on yet"), (0, n, 0, n), pair)
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
    i, j = epoch.hits.sum(axis=0)[:, at:].sum(axis=1).tolist()
    return Witness.of(epoch.partition.event(at - 1), (i, epoch.draws, j, epoch.draws), pair)
