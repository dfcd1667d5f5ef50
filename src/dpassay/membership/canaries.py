"""`dpassay.Canaries`: records that a fair coin each includes in the training data; files of scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import BoolArray, FloatArray
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.membership.one_run import Guesses, one_run
from dpassay.outputs.foreign_arrays import is_frame
from dpassay.outputs.named_features import closeness
from dpassay.privacy.claims import Claim
from dpassay.records import Record
from dpassay.results.estimates import LowerBound
from dpassay.results.verdict import Verdict
from dpassay.sampling.draw import seed_of, stream
from dpassay.sampling.files import read_table

#: The address of the coins' randomness.
_COINS = 1 << 22


@dataclass(frozen=True, eq=False)
class Canaries(Record):
    """Records that a fair coin each includes in the training data or leaves out.

    The coins are a function of the seed and are stored with it, so that the run can be repeated and
    checked. `to_json` keeps seed and coins, not the records. Train on `dataset()`, compute a membership
    inference score of every canary, included or not, and give the scores to `audit`.

    A list has a canary an item, an array or a data frame a canary a row. A tuple of arrays, such as
    features and labels `(X, y)`, is columns of equal length, a canary a row; `data` is then such a tuple
    as well.

    >>> canaries = Canaries(["a", "b", "c", "d"], data=["x", "y"], rng=1)
    >>> canaries.dataset()
    ['x', 'y', 'b', 'd']
    >>> Canaries.from_json(canaries.to_json()).included.tolist()
    [False, True, False, True]
    """

    records: Any = field(default=None, repr=False, metadata={"live": True})
    data: Any = field(default=(), repr=False, kw_only=True, metadata={"live": True})
    #: The seed of the coins.
    rng: Any = field(default=None, kw_only=True)
    included: BoolArray = field(default=None, repr=False, kw_only=True)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        self._set(rng=seed_of(self.rng))
        given: Any = self.included
        records = self.records
        if given is None and records is None:
            raise InvalidInput("records must be a list or an array of canaries, got None")
        if records is not None:
            _check_columns(records, self.data)
        rows = records[0] if _is_columns(records) else records
        try:
            many = len(given if records is None else rows)
        except Exception:  # an object may raise anything
            raise InvalidInput(
                f"records must be a list or an array of canaries, got {checks.shown(records)}"
            ) from None
        if not many:
            raise InvalidInput("records must hold at least one canary, got none")
        # from an address of its own: training with the same seed must not use the same randomness
        coins = stream(self.rng, _COINS).integers(2, size=many).astype(bool)
        if given is not None and not np.array_equal(np.asarray(given, dtype=bool), coins):
            raise InvalidInput(
                f"these {len(given):,} coins are not those of the seed {self.rng}; leave included out"
            )
        coins.setflags(write=False)
        self._set(included=coins)

    def __len__(self) -> int:
        return len(self.included)

    def dataset(self) -> Any:
        """What to train on: the data, then the canaries that are included."""
        if self.records is None:
            raise InvalidInput(
                "a record of coins has no canaries; make Canaries(records, rng=seed)"
            )
        if is_frame(self.records):
            return _concatenated(self.data, self.records, self.included)
        if _is_columns(self.records):
            data = self.data if len(self.data) else [()] * len(self.records)
            return tuple(map(self._joined, self.records, data))
        if isinstance(self.records, np.ndarray):
            return self._joined(self.records, self.data)
        return [
            *self.data,
            *(r for r, kept in zip(self.records, self.included, strict=True) if kept),
        ]

    def _joined(self, records: Any, data: Any) -> Any:
        chosen = np.asarray(records)[self.included]
        return np.concatenate([np.asarray(data), chosen]) if len(data) else chosen

    def nearest_rows(self, table: Any) -> FloatArray:
        """A score of every canary by a synthetic table: 1 − distance of the nearest row.

        The distance is Gower's, over the columns that canary and table share: the mean of |x − y| over
        the spread of the column for numbers, and of 0 or 1 for all else. The score depends on the output
        of the run and on the canaries alone, as `audit` requires.

        >>> canaries = Canaries([{"a": 1, "b": "x"}, {"a": 5, "b": "y"}], rng=0)
        >>> canaries.nearest_rows([{"a": 1, "b": "x"}, {"a": 3, "b": "z"}]).tolist()
        [1.0, 0.25]
        """
        if self.records is None:
            raise InvalidInput("a record of coins has no canaries to compare with")
        return closeness(self.records, table)

    def audit(
        self,
        scores: npt.ArrayLike,
        *,
        claim: Claim | str | None = None,
        guesses: Guesses = None,
        delta: float | None = None,
        confidence: float = 0.95,
        rng: Any = None,
    ) -> Verdict | LowerBound:
        """`one_run` of the scores of all canaries, in the order of the records."""
        return one_run(
            scores,
            self.included,
            claim=claim,
            guesses=guesses,
            delta=delta,
            confidence=confidence,
            rng=rng,
        )


def _is_columns(given: Any) -> bool:
    """Whether this is a tuple of arrays, a column each."""
    if not isinstance(given, tuple) or not given:
        return False
    return all(len(getattr(one, "shape", ())) > 0 for one in given)


def _concatenated(data: Any, records: Any, included: BoolArray) -> Any:
    """The rows of a frame and those of another that are included, as one frame."""
    if type(records).__module__.startswith("polars"):
        import polars

        chosen = records.filter(polars.Series(included))
        return polars.concat([data, chosen]) if len(data) else chosen
    import pandas

    chosen = records[included]
    return pandas.concat([data, chosen], ignore_index=True) if len(data) else chosen


def _check_columns(records: Any, data: Any) -> None:
    """Refuse columns of canaries and of data that do not go together."""
    if is_frame(records) and len(data) and type(data) is not type(records):
        raise InvalidInput(
            f"the canaries are a data frame, so data must be one too, got {checks.shown(data)}"
        )
    if not _is_columns(records):
        if _is_columns(data):
            raise InvalidInput(
                f"data is a tuple of {len(data)} arrays, and the canaries are {type(records).__name__}: "
                "give them as a tuple of as many arrays, (canary_X, canary_y) for data=(X, y)"
            )
        return
    for name, columns in (("records", records), ("data", data)):
        lengths = [len(column) for column in columns] if _is_columns(columns) else []
        if len(set(lengths)) > 1:
            raise InvalidInput(
                f"{name} is a tuple of arrays, a row a record, and they have {lengths} rows: give arrays "
                "of one length, or a list in which each item is a record"
            )
    if len(data) and not (_is_columns(data) and len(data) == len(records)):
        raise InvalidInput(
            f"the canaries are a tuple of {len(records)} arrays, so data must be one of as many, got "
            f"{checks.shown(data)}; if each array is a canary, give them as a list"
        )


# --- files


def audit_file(
    path: str | Path,
    *,
    score: str = "score",
    included: str = "included",
    sign: str = "higher",
    max_bytes: int | None = None,
    **options: Any,
) -> Verdict | LowerBound:
    """`one_run` of two columns of a file; with sign="lower" small scores speak for included ones."""
    checks.one_of("sign", sign, ("higher", "lower"), remedy="lower for losses")
    table = read_table(path, max_bytes)
    names = table.names or ()
    for wanted in (score, included):
        if wanted not in names:
            has = ", ".join(map(repr, names)) or "none with a name"
            raise UnreadableFile(
                f"{str(path)!r} needs the columns {score} and {included}, a row a canary, and has {has}; "
                "say which they are with --score and --included"
            )
    scores, coins = (table.columns[names.index(name)] for name in (score, included))
    for name, column in ((score, scores), (included, coins)):
        if column.dtype.kind not in "bif":
            odd = next((v for v in column.tolist() if not isinstance(v, (bool, int, float))), None)
            at = column.tolist().index(odd) + 1
            raise UnreadableFile(
                f"column {name!r} of {str(path)!r} has {odd!r} in row {at:,}; every canary needs a "
                "number as its score, and 0 or 1 for included"
            )
    used = replace(table.origin, columns=(score, included))
    found = one_run(scores if sign == "higher" else -scores.astype(float), coins, **options)
    return replace(found, about=replace(found.about, files=(used,)))


def read_guesses(text: str | None) -> Guesses:
    """How many to guess, as the command line writes it: 200, 100+50 or 100,200.

    >>> read_guesses("200"), read_guesses("100+50"), read_guesses("100,20+10")
    (200, (100, 50), [100, (20, 10)])
    """
    if text is None:
        return None
    try:
        read = [[int(n) for n in one.split("+")] for one in text.split(",")]
        if any(len(one) > 2 for one in read):
            raise ValueError
    except ValueError:
        raise InvalidInput(
            f"guesses must be a number such as 200, two such as 100+50 (to be included, to be left out), "
            f"or several such as 100,200, got {text!r}"
        ) from None
    listed = [one[0] if len(one) == 1 else (one[0], one[1]) for one in read]
    return listed[0] if len(listed) == 1 else listed
