"""Cross-fitting: the candidate scores of one pair, each judged on draws it was not fitted to.

Either half of the training draws is scored by what was fitted to the other half. The score that is chosen
is then fitted to all of them. A poor choice costs power, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, FloatArray
from dpassay.errors import InvalidInput, NotApplicable
from dpassay.outputs.events import Event, Intervals, of_keys
from dpassay.outputs.named_features import Feature
from dpassay.outputs.representations import text_of
from dpassay.outputs.templates import NUMBER, children, leaves_of
from dpassay.rounding import shortest_above
from dpassay.sampling.samples import Batch
from dpassay.scores.cell_counts import SIZES
from dpassay.scores.classifier import ClassifierScore, check_classifier
from dpassay.scores.fit import NAMES, Score, fit
from dpassay.scores.parity import MOST
from dpassay.scores.serializable import SerializableScore, with_same_feature
from dpassay.scores.training import Training

Streams: TypeAlias = Callable[[int], np.random.Generator]
Scores: TypeAlias = tuple[FloatArray, FloatArray]
T = TypeVar("T")

#: Boosted trees need this many training draws a side.
_TREES = 250
#: Products of all pairs of coordinates are tried up to this many coordinates.
_PRODUCTS = 200
#: Fewer training draws a side than these are not split: only the output itself is tried.
_SPLIT = 200

#: Losses on cells, which are fitted to counts.
ON_CELLS = ("kde", "polynomial")
#: Scores that may find no difference at all, which is then no failure.
_TABLES = ("lowest bit", "bits", "characters", "parity")
#: Scores of the floating-point representation.
_BITS = ("lowest bit", "bits")
#: The score of which keys or cells an output has, whatever their numbers.
_STRUCTURE = ("structure",)
#: Text of more different values than this is split into characters.
_TEXTS = 20
#: Vectors of more numbers than these, unless integers, have no named features.
_WIDE = 128
_DIGITS = 1000  # integers that spread over more than this have digits as features
#: Outputs of at most so many categories are scored by all training draws at once.
_FEW = 30
_OFTEN = 20  # draws per category that suffice for its frequency
_SOME = 1000  # outputs that are looked at for coordinates that vary
#: Scores with few parameters, or with few steps.
_PARAMETRIC = ("polynomial", "ranks", "linear", "logistic", "products", "discriminant", "additive")
#: Scores that are slow to fit.
_SLOW = ("products", "boosting")


def candidates(training: Training) -> list[str]:
    """The scores worth trying on outputs like these, those with the fewest parameters first.

    One continuous number: a quadratic, densities, and cells whose resolution follows the data. More: also
    polynomials in all coordinates, and boosted trees. None: frequencies, and for counts a line; where
    combinations of values hardly repeat, the scores for several numbers. Collections: named features.
    """
    layout, draws = training.layout, min(training.sizes)
    free = layout.widest
    width = training.p.outputs.numbers.shape[1]
    often = len(layout) <= _FEW and draws >= _OFTEN * len(layout)  # each kind by itself
    scattered = not free and width > 1 and len(layout) > draws / 100 and not often
    many = free > 1 or scattered or (free == 1 and width > 1)
    many &= training.p.outputs.structures[0][0] not in ("date", "duration")  # one number
    collections = not training.p.outputs.is_plain and _varied(training)
    names = ["feature", "features"] if collections else []
    if len(layout) > 1 and (free or len(layout) <= _FEW):
        names.append("categories")
    if 1 < len(training.p.outputs.structures) <= min(_TEXTS, len(layout) - 1):
        names += _STRUCTURE
    narrow = width <= _WIDE or _whole_numbers(training)
    if not collections and ((many and width > 2 and narrow) or _parted(training)):
        names.append("feature")  # before combinations: a witness of one feature is easier to read
    if width == 1 and not free and len(layout) > 5:
        names.append("linear")  # counts: the frequencies of large ones are known from all
    if many:
        names.append("linear" if width > _PRODUCTS else "logistic")
        if 2 < width <= _PRODUCTS and draws > 5 * width:
            names.append("discriminant")
        if 2 < width <= _PRODUCTS and draws > 20 * width:
            names.append("products")
        if _binary(training):
            names.append("parity")
    if free <= 2:
        names += ["polynomial", "kde"] if free else ["kde"]
    if free == 1:
        names += ["ranks", "dyadic"]
    if many and draws >= _TREES:
        names += ["additive", "boosting"] if _several(training) else ["boosting"]
    kinds = training.p.outputs.structures
    if len(kinds) > _TEXTS and any(text_of(leaf) for leaf in leaves_of(kinds[0])):
        names.append("characters")  # of text that hardly repeats
    return names


def _varied(training: Training) -> bool:
    """Whether outputs are collections or texts of many structures."""
    kinds = training.p.outputs.structures
    return len(kinds) > _TEXTS and any(children(one) or text_of(one) for one in kinds[:_TEXTS])


def _parted(training: Training) -> bool:
    """Whether outputs have named parts, or values that have parts: dates, numbers of several digits.

    Or whether some are counts and others are not: missing cells.
    """
    outputs = training.p.outputs
    if 1 < len(outputs.structures) <= _TEXTS and len(training.layout) > _FEW:
        return True
    if any(one[0] in ("date", "dict") for one in outputs.structures[:_TEXTS]):
        return True
    some = np.asarray(outputs.numbers[:200], dtype=float)
    return bool(some.size and np.array_equal(some, np.round(some)) and np.ptp(some) > _DIGITS)


def _whole_numbers(training: Training) -> bool:
    """Whether the coordinates are few whole numbers each, so that combinations of them may repeat."""
    some = np.asarray(training.p.outputs.numbers[:1000], dtype=float)
    return bool(np.array_equal(some, np.round(some)) and np.ptp(some, axis=0).max(initial=0) < 256)


def _several(training: Training) -> bool:
    """Whether several coordinates vary."""
    return bool(np.sum(np.ptp(training.p.outputs.numbers[:_SOME], axis=0) > 0) > 1)


def _binary(training: Training) -> bool:
    """Whether most coordinates have two values."""
    some = np.asarray(training.p.outputs.numbers[:200], dtype=float)
    if not 2 < some.shape[1] <= MOST:
        return False
    low, high = some.min(axis=0), some.max(axis=0)
    return bool(np.mean(np.all((some == low) | (some == high), axis=0)) > 0.5)


def _has_low_bits(numbers: AnyArray) -> bool:
    """Whether some are no whole numbers below 2⁵², of which the value says all bits."""
    if numbers.dtype.kind != "f":
        return False
    return bool(np.any((numbers != np.floor(numbers)) | (np.abs(numbers) >= 2.0**52)))


class CrossFit:
    """The training draws of one pair: their layout, and cross-fitted scores by each candidate."""

    def __init__(
        self,
        batch: Batch,
        loss: Any,
        rng: Streams,
        *,
        thorough: bool = False,
        smooth: bool = False,
        lean: bool = False,
        pair: Any = None,
    ) -> None:
        if not isinstance(loss, str):
            check_classifier(loss)
        elif loss not in _BITS:
            checks.one_of("loss", loss, ("auto", "values", *NAMES))
        self.batch, self.loss, self.rng = batch, loss, rng
        self.thorough, self.smooth, self.lean = thorough, smooth, lean
        self.pair = pair  # the inputs, for features that compare outputs with them
        self.failures: list[str] = []
        self._scores: dict[int, Scores | None] = {}
        self._fitted: dict[int, Score] = {}
        self._halves: dict[int, Score] = {}  # fitted to the first half

    @cached_property
    def training(self) -> Training:
        return Training.of(self.batch, thorough=self.thorough, smooth=self.smooth, pair=self.pair)

    def on(self, batch: Batch, *, smooth: bool | None = None) -> CrossFit:
        """The same with other draws, or with values on a grid as numbers or as atoms."""
        return CrossFit(
            batch,
            self.loss,
            self.rng,
            thorough=self.thorough and batch is self.batch,
            smooth=self.smooth if smooth is None else smooth,
            lean=self.lean,
            pair=self.pair,
        )

    @property
    def _auto(self) -> bool:
        """Whether the candidates are chosen here, not by the caller."""
        return isinstance(self.loss, str) and self.loss in ("auto", "values")

    @cached_property
    def names(self) -> list[Any]:
        """The candidates; with `lean` without those that are slow to fit."""
        if not isinstance(self.loss, str):
            return [self.loss]
        match self.loss:
            case "auto" | "values":
                own = candidates(self.training)
                if self.lean:
                    own = [name for name in own if name not in _SLOW]
                sides = self.training.p, self.training.q
                floats = any(_has_low_bits(side.outputs.numbers) for side in sides)
                bits = self.loss == "auto" and self.training.layout.widest and floats
                return [*own, *(_BITS if bits else ())]
            case "bits":
                return list(_BITS)
        return [self.loss]

    @cached_property
    def families(self) -> tuple[list[int], list[int], list[int]]:
        """The candidates that score values, and beside them representations, and structures."""
        bits, structures = (
            [k for k, name in enumerate(self.names) if self._auto and name in names]
            for names in (_BITS, _STRUCTURE)
        )
        values = [k for k in range(len(self.names)) if k not in (*bits, *structures)]
        return values, bits, structures

    @cached_property
    def plain_numbers(self) -> tuple[int, Scores] | None:
        """The one key that leaves a single number free, and all numbers; NaN for other outputs."""
        if not self._auto:
            return None
        layout = self.training.layout
        if layout.widest != 1:
            return None
        keys = [key for key in range(len(layout)) if layout.free(key)]
        if len(keys) != 1:
            return None
        atoms = self._atoms_of(keys[0])
        found = []
        for side in (self.training.p, self.training.q):
            of = side.all_keys()
            numbers = np.full(len(layout) + 1, np.nan)  # the last one: outputs in no key
            numbers[list(atoms)] = list(atoms.values())
            numbers = numbers[of]
            numbers[of == keys[0]] = side.numbers(keys[0])[:, 0]
            found.append(numbers)
        return keys[0], (found[0], found[1])

    def _atoms_of(self, free: int) -> dict[int, float]:
        """Values that repeat, by their key, of outputs that are a number and else are in the free key.

        A date is a number of seconds where its nanoseconds are those of the free key.
        """
        layout = self.training.layout
        part = layout.part(free)
        if len(part.atoms) != 1 and part.template[0] not in ("date", "duration"):
            return {}
        same = np.flatnonzero(layout.parts_of == layout.parts_of[free]).tolist()
        values = {key: part.values(int(layout.codes[key])) for key in same}
        rest = values.pop(free)[1:]
        return {key: v[0] for key, v in values.items() if v[0] is not None and v[1:] == rest}

    def number_event(self, threshold: float, above: bool) -> Event:
        """{number ≥ threshold} or {number ≤ threshold}, where there are plain numbers.

        Any threshold between the same training draws will do: the one with the fewest digits.
        """
        assert self.plain_numbers is not None
        key, layout = self.plain_numbers[0], self.training.layout
        if layout.part(key).template == NUMBER and not any(layout.part(key).origins):
            sign = 1.0 if above else -1.0
            values = sign * np.concatenate(self.plain_numbers[1])
            before = np.max(values, where=values < sign * threshold, initial=-np.inf)
            threshold = sign * shortest_above(float(before), float(sign * threshold))
        ends = (threshold, np.inf) if above else (-np.inf, np.nextafter(threshold, np.inf))
        inside = Intervals(*(np.array([end]) for end in ends))
        atoms = tuple(k for k, v in self._atoms_of(key).items() if ends[0] <= v < ends[1])
        return of_keys(layout, (), [(key, inside)], repeated=atoms)

    @property
    def small_support(self) -> bool:
        """Whether outputs are of few categories, and nothing else."""
        layout = self.training.layout
        return self._auto and not layout.widest and 1 < len(layout) <= _FEW

    @cached_property
    def on_cells(self) -> list[str]:
        """The candidates on cells; none where few outputs would share a cell."""
        if self._auto and self.training.layout.widest > max(SIZES):
            return []
        return [name for name in self.names if isinstance(name, str) and name in ON_CELLS]

    @property
    def small(self) -> bool:
        return min(self.training.sizes) < _SPLIT

    def scores(self, index: int) -> Scores | None:
        """Cross-fitted scores by a candidate; None if it could not be fitted, which is noted."""
        if index not in self._scores:
            self._scores[index] = self._cross(index)
        return self._scores[index]

    def known_scores(self, index: int) -> Scores | None:
        """The scores by a candidate where it was tried, and could be."""
        return self._scores.get(index)

    def known_features(self) -> list[Feature]:
        """The named features that tell most, where some score has looked for them."""
        return [one for one, _ in self.training.__dict__.get("features", ())]

    @property
    def readable(self) -> list[int]:
        """The candidates whose events are categories, or compare one feature with a number."""
        simple = ("categories", "feature")
        return [self.names.index(one) for one in simple if self._auto and one in self.names]

    def tried_if_telling(self, index: int) -> bool:
        """Whether a candidate is tried only where it differs between the two inputs."""
        return self.names[index] in _TABLES

    def in_sample(self, index: int) -> bool:
        """Whether a candidate is judged by the draws it is fitted to, which only set its order."""
        few = self.names[index] == "categories" and len(self.training.layout) <= _FEW
        return few or self.names[index] in (*_STRUCTURE, "lowest bit")

    def parametric(self, index: int) -> bool:
        """Whether a candidate is a model with few parameters, whose log-odds are smooth far out."""
        return self.names[index] in _PARAMETRIC

    def _cross(self, index: int) -> Scores | None:
        a, b = self.training.halves
        try:
            quick = self._auto and self.names[index] in _TABLES
            if quick and not getattr(self.fitted(index), "telling", True):
                return None
            if self.in_sample(index):
                return self._scored(self.fitted(index))
            there = fit(self.names[index], a, rng=self.rng(3 * index))
            back = fit(self.names[index], b, rng=self.rng(3 * index + 1))
            if self._auto and not any(getattr(one, "telling", True) for one in (there, back)):
                return None
            if isinstance(there, SerializableScore) and isinstance(back, SerializableScore):
                there, back = self._same_feature(index, there, back)
            scores = tuple(
                np.concatenate([back.score(first.outputs), there.score(second.outputs)])
                for first, second in ((a.p, b.p), (a.q, b.q))
            )
            if any(np.isnan(side).all() for side in scores):  # areas of 1e300 · 1e300 overflow
                raise InvalidInput("its scores are NaN: rescale the outputs")
        except NotApplicable:
            if len(self.names) == 1:
                raise
            return None  # a candidate of ours that is none for these outputs: no failure
        except Exception as error:
            if len(self.names) == 1:
                raise
            self.failures.append(f"{self.names[index]} ({type(error).__name__}: {error})")
            return None
        self._halves[index] = there
        return scores[0], scores[1]

    def _same_feature(
        self, index: int, there: SerializableScore, back: SerializableScore
    ) -> tuple[SerializableScore, SerializableScore]:
        """Both halves, and all draws, with one feature, where each half's tells on the other half.

        The best feature of all draws may be a third one: its threshold would not be the one judged. Of
        two features that tell the halves apart the one that all draws prefer is taken; that it was
        chosen by them, too, makes it look better by as good as nothing.
        """
        if self.names[index] != "feature":
            return there, back
        a, b = self.training.halves
        whole = fit("feature", self.training, rng=self.rng(3 * index + 2))
        assert isinstance(whole, SerializableScore)
        one, other, best = (x.score_function.feature for x in (there, back, whole))
        if one is None or other is None:
            return there, back
        if one != other:
            if not (_tells(there, b) and _tells(back, a)):
                return there, back
            chosen = back if best == other else there
            there, back = with_same_feature(chosen, a), with_same_feature(chosen, b)
        if best != there.score_function.feature:
            whole = with_same_feature(there, self.training)
        self._fitted[index] = whole
        return there, back

    def _scored(self, loss: Score) -> Scores:
        return loss.score(self.training.p.outputs), loss.score(self.training.q.outputs)

    def fitted(self, index: int) -> Score:
        """A candidate fitted to all training draws.

        A classifier that then predicts the very draws it learned from worse than its halves predicted
        each other's has stopped too early, and a feature that does is not one that was judged: one of the
        halves takes its place.
        """
        if index not in self._fitted:
            loss = fit(self.names[index], self.training, rng=self.rng(3 * index + 2))
            known = self._scores.get(index)
            chosen = isinstance(loss, ClassifierScore) or self.names[index] == "feature"
            if known is not None and chosen:
                again = self._scored(loss)
                losses = [float(LogLoss().judge(scores).mean()) for scores in (again, known)]
                if losses[0] > losses[1]:
                    loss = self._halves[index]
            self._fitted[index] = loss
        return self._fitted[index]


class Criterion(Protocol, Generic[T]):
    """What makes one score better than another."""

    def judge(self, scores: Scores, parametric: bool) -> T:
        """What held-back scores predict, by a model of few parameters or not."""

    def beats(self, new: T, best: T) -> bool:
        """Whether a later candidate is clearly better."""


def select(
    learner: CrossFit, criterion: Criterion[T], family: Sequence[int] | None = None
) -> tuple[int, T]:
    """The candidate, of all or of some, that does best on held-back draws, and what it predicts."""
    best: tuple[int, T] | None = None
    for index in range(len(learner.names)) if family is None else family:
        scores = learner.scores(index)
        if scores is None:
            continue
        predicted = criterion.judge(scores, learner.parametric(index))
        if best is None or criterion.beats(predicted, best[1]):
            best = index, predicted
    if best is None:
        raise InvalidInput(f"no score could be fitted: {'; '.join(learner.failures)}")
    return best


def log_loss(against: FloatArray) -> FloatArray:
    """log(1 + e^x) of log-odds x against the side a draw is from; np.logaddexp takes far longer."""
    return np.asarray(np.maximum(against, 0.0) + np.log1p(np.exp(-np.abs(against))))


class LogLoss:
    """The score that predicts best which side a draw is from, by more than a standard error."""

    def judge(self, scores: Scores, parametric: bool = False) -> FloatArray:
        """The log loss of each draw, log(1 + e^∓score), both sides weighing the same."""
        p, q = scores
        weights = np.repeat([1.0, p.size / q.size], [p.size, q.size])
        return np.asarray(log_loss(np.concatenate([-p, q])) * weights)

    def beats(self, new: FloatArray, best: FloatArray, errors: float = 1.0) -> bool:
        """By the paired differences, and so many standard errors of them."""
        gain = best - new
        return bool(gain.mean() > errors * gain.std() / math.sqrt(gain.size))


def _tells(score: Score, training: Training) -> bool:
    """Whether a score predicts which side held-back draws are from, by two standard errors."""
    scores = score.score(training.p.outputs), score.score(training.q.outputs)
    nothing = LogLoss().judge((np.zeros(scores[0].size), np.zeros(scores[1].size)))
    return LogLoss().beats(LogLoss().judge(scores), nothing, 2.0)


#: A score beats the cells if its log loss is smaller by so many standard errors, and by so much; draws a
#: side that tell.
_CLEARLY, _BETTER, COMPARED = 3.0, 0.002, 1 << 15


def first_draws(batch: Batch) -> Batch:
    """As many draws as are compared, where there are more."""
    return Batch(batch.p[:COMPARED], batch.q[:COMPARED])


def cells_suffice(learner: CrossFit) -> bool:
    """Whether no score predicts clearly better than losses on cells which input an output is from.

    Cells are too wide for heavy tails, and too many for hundreds of whole numbers.
    """
    if max(learner.batch.sizes) > COMPARED:
        return cells_suffice(learner.on(first_draws(learner.batch)))
    cells: list[FloatArray] = []
    others: list[FloatArray] = []
    for k in learner.families[0]:
        if (scores := learner.scores(k)) is not None:
            losses = LogLoss().judge(scores)
            (cells if learner.names[k] in learner.on_cells else others).append(losses)
    if not cells:
        return False
    gains = [min(cells, key=np.mean) - other for other in others]
    return not any(
        gain.mean() > max(_CLEARLY * gain.std() / math.sqrt(gain.size), _BETTER) for gain in gains
    )
