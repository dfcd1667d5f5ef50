"""`dpassay.Canaries`: records that a fair coin each includes in the training data; files of scores."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, BoolArray, FloatArray
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.membership.guessing import Guesses
from dpassay.membership.one_run import one_run
from dpassay.membership.runs import SCORES, is_several, read_scores
from dpassay.outputs.foreign_arrays import is_frame
from dpassay.outputs.targets import closeness
from dpassay.records import Record
from dpassay.results.estimates import LowerBound
from dpassay.results.verdict import Verdict
from dpassay.sampling.draw import seed_of, stream
from dpassay.sampling.files import read_table
from dpassay.sampling.text_tables import Marks

#: The address of the coins' randomness.
_COINS = 1 << 22
#: What canaries can be.
_KINDS = (
    "a list, an array, a tensor, a tuple or dict of columns, or a data set with a length and [k], of "
    "canaries"
)


@dataclass(frozen=True, eq=False)
class Canaries(Record):
    """Records that a fair coin each includes in the training data or leaves out.

    Train on `dataset()` of this object, and on nothing else. A model that is trained on all canaries, or
    on the `dataset()` of another seed, knows nothing of these coins, and nothing is certified.

    The coins are a function of the seed and are stored with it, so that the run can be repeated and
    checked. `to_json` keeps seed and coins, not the records. After training compute a membership
    inference score of every canary, included or not, and give the scores to `audit`.

    A list has a canary an item, an array, a tensor or a data frame a canary a row, and a data set of
    PyTorch (anything with a length and `[k]`) likewise. Columns of equal length, a canary a row, are a
    tuple such as `(X, y)` or a dict such as `{"input_ids": …, "labels": …}`. `data` is of the same kind,
    and so is `dataset()`.

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
        if given is None and self.records is None:
            raise InvalidInput(f"records must be {_KINDS}, got None")
        if self.records is not None:
            _check_kinds(self.records, self.data)
        many = len(given) if self.records is None else _count(self.records)
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

    def __repr__(self) -> str:
        return f"Canaries({len(self):,} canaries, {self.included.sum():,} included, rng={self.rng})"

    def dataset(self) -> Any:
        """What to train on: the data, then the canaries that are included."""
        if self.records is None:
            raise InvalidInput(
                "a record of coins has no canaries; make Canaries(records, rng=seed)"
            )
        self._set(_was_given=True)
        return _joined(self.data, self.records, self.included)

    def score(
        self, model: Any, loss_fn: Any, *, batch_size: int = 256, device: Any = None
    ) -> FloatArray:
        """−loss of every canary under a trained model of PyTorch: `audit` takes these scores.

        The canaries are pairs of inputs x and targets y (a tuple of two columns, or items that are such
        pairs), or a dict with a column "labels" and inputs that `model` takes by name. The model is
        evaluated in eval mode and without gradients; its mode is as before afterwards.

        loss_fn     `loss_fn(model(x), y)` gives a loss a canary: reduction="none"
        device      where batches go; the device of the model without a word
        """
        from dpassay.membership.pytorch import losses

        return -losses(model, loss_fn, self._rows("score"), batch_size, device)

    def record(
        self, model: Any, loss_fn: Any, optimizer: Any, *, batch_size: int = 64, device: Any = None
    ) -> Any:
        """Record white-box scores while a model of PyTorch is trained; the arguments are as in `score`.

        Call it before the first step, and with Opacus after `make_private`. After training the `scores`
        of what it returns go to `audit` (`dpassay.membership.pytorch.GradientScores`).
        """
        from dpassay.membership.pytorch import GradientScores

        rows = self._rows("record")
        return GradientScores(model, loss_fn, optimizer, rows, batch_size, device)

    def _rows(self, verb: str) -> Any:
        """The canaries as items or columns that can be cut into batches."""
        if self.records is None or is_frame(self.records):
            got = "a data frame" if is_frame(self.records) else "a record of coins alone"
            raise InvalidInput(
                f"{verb} needs canaries that are inputs and targets of a model, got {got}; make "
                "Canaries((X, y), data=…, rng=seed) of tensors or arrays"
            )
        return columns_of(self.records) or self.records

    def nearest_rows(self, table: Any) -> FloatArray:
        """A score of every canary by a synthetic table: 1 − distance of the nearest row.

        The distance is Gower's, over the columns of the canary: the mean of |x − y| over the spread of
        the column for numbers, and of 0 or 1 for all else. The table must have these columns, with
        numbers where the canaries have numbers; it may have more. The score depends on the output
        of the run and on the canaries alone, as `audit` requires.

        >>> canaries = Canaries([{"a": 1, "b": "x"}, {"a": 5, "b": "y"}], rng=0)
        >>> canaries.nearest_rows([{"a": 1, "b": "x"}, {"a": 3, "b": "z"}]).tolist()
        [1.0, 0.25]
        """
        if self.records is None:
            raise InvalidInput("a record of coins has no canaries to compare with")
        return closeness(self.records, table)

    def audit(self, scores: Any, **options: Any) -> Verdict | LowerBound:
        """`one_run` of the scores of all canaries, in the order of the records; its options are those.

        A list of arrays, such as the scores of batches, is joined: the canaries are of one run.
        """
        if is_several(scores):
            scores = np.concatenate([read_scores("scores", one, *SCORES) for one in scores])
        found = one_run(scores, self.included, **options)
        known = self.records is None or getattr(self, "_was_given", False)
        if known or found.certified is None or found.certified.epsilon > 0:
            return found
        note = (
            "dataset() of these canaries was not called: was the model trained on what it returns?"
        )
        return replace(found, about=replace(found.about, notes=(note, *found.about.notes)))


class JoinedRows:
    """The items of a data set, then those of another that are included: a map-style data set."""

    def __init__(self, data: Any, records: Any, included: BoolArray) -> None:
        self._data, self._records = data, records
        self._chosen = np.flatnonzero(included).tolist()

    def __len__(self) -> int:
        return len(self._data) + len(self._chosen)

    def __getitem__(self, index: Any) -> Any:
        k = range(len(self))[operator.index(index)]
        first = len(self._data)
        return self._data[k] if k < first else self._records[self._chosen[k - first]]


def columns_of(given: Any) -> dict[Any, Any] | None:
    """Columns by name or by place, of a dict and of a tuple with arrays in it; None of all else."""
    if isinstance(given, Mapping):
        return dict(given)
    sized = isinstance(given, tuple) and all(
        hasattr(one, "__len__") and not isinstance(one, str) for one in given
    )
    if sized and any(len(getattr(one, "shape", ())) > 0 for one in given):
        return dict(enumerate(given))
    return None


def _is_tensor(value: Any) -> bool:
    """Whether this is a tensor of PyTorch, which is not imported for it."""
    return type(value).__module__.startswith("torch") and hasattr(value, "detach")


def _count(given: Any, name: str = "records") -> int:
    """How many records there are."""
    columns = columns_of(given)
    rows = given if columns is None else next(iter(columns.values()), ())
    try:
        found = len(rows)
        if hasattr(rows, "__getitem__"):
            return found
    except Exception:  # an object may raise anything
        pass
    raise InvalidInput(f"{name} must be {_KINDS}, got {checks.shown(given)}")


def _joined(data: Any, records: Any, included: BoolArray) -> Any:
    """Data and the canaries that are included, of the same kind."""
    columns = columns_of(records)
    if columns is not None:
        rest = columns_of(data) or dict.fromkeys(columns, ())
        made = {name: _joined(rest[name], column, included) for name, column in columns.items()}
        return made if isinstance(records, Mapping) else tuple(made.values())
    join: Any
    if is_frame(records) and type(records).__module__.startswith("polars"):
        import polars

        parts, join = [data, records.filter(polars.Series(included))], polars.concat
    elif is_frame(records):
        import pandas

        parts, join = [data, records[included]], partial(pandas.concat, ignore_index=True)
    elif _is_tensor(records):
        import torch

        chosen = torch.tensor(included.tolist(), device=records.device)
        parts, join = [data, records[chosen]], torch.cat
    elif hasattr(records, "shape"):
        parts, join = [np.asarray(data), np.asarray(records)[included]], np.concatenate
    elif isinstance(records, Sequence):
        return [*data, *compress(records, included)]
    else:
        return JoinedRows(data, records, included)
    return join(parts) if len(data) else parts[1]


def _check_kinds(records: Any, data: Any) -> None:
    """Refuse canaries and data that do not go together."""
    mine, theirs = columns_of(records), columns_of(data)
    if mine is None and theirs:
        raise InvalidInput(
            f"data is {_named(theirs)}, and the canaries are {type(records).__name__}: give them as a "
            "tuple or a dict of as many, (canary_X, canary_y) for data=(X, y)"
        )
    for name, columns in (("records", mine or {}), ("data", theirs or {})):
        lengths = [_count(column, f"{name}[{key!r}]") for key, column in columns.items()]
        if len(set(lengths)) > 1:
            raise InvalidInput(
                f"{name} is {_named(columns)}, a row a record, and they have {lengths} rows: give arrays "
                "of one length, or a list in which each item is a record"
            )
    if not _count(data, "data"):
        return
    if mine is not None and (theirs is None or set(theirs) != set(mine)):
        raise InvalidInput(
            f"the canaries are {_named(mine)}, so data must be one of as many, with the same names if it "
            f"is a dict, got {checks.shown(data)}; if each array is a canary, give them as a list"
        )
    for key, column in (mine or {"": records}).items():
        rows = data if theirs is None else theirs[key]
        for words, is_kind in (("a data frame", is_frame), ("a tensor", _is_tensor)):
            if is_kind(column) and not is_kind(rows):
                raise InvalidInput(
                    f"the canaries are {words}, so data must be one too, got {checks.shown(rows)}"
                )
        if is_frame(column) and (odd := {*column.columns} ^ {*rows.columns}):
            raise InvalidInput(
                f"the canaries and the data must have the same columns; one of the two lacks "
                f"{', '.join(sorted(map(repr, odd)))}"
            )
        shapes = [one.shape if checks.has(one, "shape") else () for one in (column, rows)]
        if all(shapes) and not is_frame(column) and shapes[0][1:] != shapes[1][1:]:
            raise InvalidInput(
                f"a canary has the shape {tuple(shapes[0][1:])}, and a row of the data "
                f"{tuple(shapes[1][1:])}; give both in one shape"
            )


def _named(columns: dict[Any, Any]) -> str:
    """Columns in words: "a tuple of 2 arrays", "a dict of the columns x, y"."""
    if all(isinstance(name, int) for name in columns):
        return f"a tuple of {len(columns)} arrays"
    return f"a dict of the columns {', '.join(map(str, columns))}"


# --- files


#: Labels of canaries have at least so many values; and coins that agree by chance in one of 10⁹ files.
_LABELS, _AGREEING = 10, 30
_NAMED = (
    "give a .csv, .parquet or .jsonl file with named columns, a row a canary; or, in Python, arrays to "
    "dp.one_run or dp.attack_rates"
)


def audit_file(
    path: str | Path, columns: Mapping[str, Any] | None = None, **options: Any
) -> Verdict | LowerBound:
    """`one_run` of columns of a file, which are named as for `read_columns`."""
    given, used, remarks = read_columns(path, **(columns or {}))
    found = one_run(**given, **options)
    notes = (*found.about.notes, *remarks)
    return replace(found, about=replace(found.about, files=(used,), notes=notes))


def read_columns(
    path: str | Path,
    *,
    score: str = "score",
    included: str = "included",
    sign: str = "higher",
    group: str | None = None,
    run: str | None = None,
    max_bytes: int | None = None,
    **marks: str,
) -> tuple[dict[str, Any], Any, list[str]]:
    """Scores, coins and groups of a file, in lists of arrays if there are runs; their origin; notes.

    With sign="lower" small scores speak for included canaries. `marks` are those of text: decimal,
    thousands, encoding.
    """
    checks.one_of("sign", sign, ("higher", "lower"), remedy="lower for losses")
    if Path(path).suffix.lower() == ".npz":
        raise UnreadableFile(f"{str(path)!r} may hold several arrays; {_NAMED}")
    table = read_table(path, max_bytes, Marks(**marks).check())
    names = list(table.names or ())
    wanted = {"scores": score, "included": included}
    wanted |= {name: column for name, column in (("groups", group), ("run", run)) if column}
    if not set(wanted.values()) <= set(names):
        has, remedy = "none with a name", _NAMED
        if names:
            has = ", ".join(map(repr, names))
            remedy = "say which they are with --score, --included, --group and --run"
        raise UnreadableFile(
            f"{str(path)!r} needs the columns {', '.join(wanted.values())}, a row a canary, and has "
            f"{has}; {remedy}"
        )
    if score == included:
        raise InvalidInput(
            f"column {score!r} of {str(path)!r} is given as the score and as the coin; a score must not "
            "use the coins: name a column of scores with --score"
        )
    found = {name: table.columns[names.index(column)] for name, column in wanted.items()}
    for name in ("scores", "included"):
        cells = found[name].tolist()
        usable = (
            v in (0, 1) if name == "included" else type(v) in (bool, int, float) for v in cells
        )
        row = next((k for k, good in enumerate(usable, 1) if not good), None)
        if row is not None:
            odd = cells[row - 1]
            needed = "it must be 0 or 1 for every canary, 1 for included"
            if name == "scores":
                needed = "every canary needs a number as its score"
            raise UnreadableFile(
                f"column {wanted[name]!r} of {str(path)!r} has {odd!r} in row {row:,}; {needed}"
            )
    for name in set(names) - {*wanted.values()}:
        _refuse_copies(path, name, table.columns[names.index(name)], found["included"])
    found["scores"] = (1.0 if sign == "higher" else -1.0) * found["scores"].astype(float)
    columns = tuple(wanted.values())
    left_out = tuple(name for name in table.origin.columns if name not in columns)
    used = replace(table.origin, columns=columns, left_out=left_out)
    labels = found.pop("run", None)
    if labels is None:
        note = (
            "the file has a column 'run', and all rows were read as those of one training run; if there "
            "were several, give --run run"
        )
        return found, used, [note] if "run" in names and "run" not in wanted.values() else []
    runs = [labels == one for one in dict.fromkeys(labels.tolist())]
    return {name: [column[rows] for rows in runs] for name, column in found.items()}, used, []


def _refuse_copies(path: str | Path, name: str, labels: AnyArray, included: AnyArray) -> None:
    """Refuse several rows of one canary: a column of which every value has one coin in all its rows.

    Coins of n rows of their own are alike within k values with probability 2^(k − n) at most.
    """
    listed = list(map(repr, labels.tolist()))  # some cannot be hashed
    coins = set(zip(listed, included.tolist(), strict=True))
    many = len(set(listed))
    if many < _LABELS or len(coins) > many or len(listed) - many < _AGREEING:
        return
    raise UnreadableFile(
        f"column {name!r} of {str(path)!r} has {many:,} values in {len(listed):,} rows, and each value "
        "has one coin in all its rows: these seem to be several rows of one canary, such as one an "
        "epoch, which share its coin. Give one row a canary and training run: the last, or the mean"
    )


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
