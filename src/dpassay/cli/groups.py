"""Options that go together: a command takes them as one argument and lists what it does without."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from dpassay.blackbox.mechanism import with_features
from dpassay.cli import options as o
from dpassay.cli import targets
from dpassay.cli.app import app
from dpassay.cli.inputs import Files, live, sampling, source
from dpassay.errors import InvalidInput

Body = TypeVar("Body", bound=Callable[..., None])


@dataclass(frozen=True)
class Where:
    """What to draw from, and on which inputs; or the draws that there are."""

    target: o.Target = None
    pair: o.PairOption = None
    pairs: o.PairsOption = None
    neighbours: o.NeighboursOption = None
    relation: o.RelationOption = None
    samples: o.SamplesOption = None
    store: o.StoreOption = None
    identity: o.IdentityOption = None
    columns: o.ColumnsOption = None
    drop: o.DropOption = None
    max_bytes: o.MaxBytes = None
    command: o.CommandOption = None

    def read(self, how: How) -> tuple[Any, Any]:
        """The mechanism and its pairs, or samples and None."""
        files = Files(self.samples, self.columns, self.drop, self.store, self.max_bytes)
        given = self.pair, self.pairs, self.neighbours
        box, pairs = source(self.target, self.command, files, *given, how.per_call, how.seed)
        return how.featured(box), pairs


@dataclass(frozen=True)
class How:
    """How to draw."""

    per_call: o.PerCall = False
    feature: o.FeatureOption = None
    errors_are_outputs: o.OnError = False
    seed: o.Seed = 0
    workers: o.Workers = 1
    dask: o.DaskOption = None

    def featured(self, box: Any) -> Any:
        """The mechanism with the features that were asked for."""
        if self.feature and not live(box):
            raise InvalidInput("--feature needs a mechanism: samples hold outputs in another form")
        return with_features(box, targets.features(self.feature))

    def drawing(self, box: Any, out: Out, where: Where | None = None) -> dict[str, Any]:
        """The options of a verb: where there are samples nothing is drawn."""
        if not live(box):
            return {"rng": None, "sampling": None}
        kept = (None, None) if where is None else (where.store, where.identity)
        made = sampling(self.workers, self.dask, out.quiet, self.errors_are_outputs, *kept)
        return {"rng": self.seed, "sampling": made}


@dataclass(frozen=True)
class Out:
    """What becomes of the result."""

    json: o.JsonOption = None
    report: o.ReportOption = None
    quiet: o.Quiet = False


def command(*without: str, **defaults: Any) -> Callable[[Body], Body]:
    """Register a command whose groups of options are spread out, less some, with other defaults for some.

    An option that a command does without has its default.
    """

    def register(body: Body) -> Body:
        spread: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        for one in inspect.signature(body, eval_str=True).parameters.values():
            if not dataclasses.is_dataclass(one.annotation):
                spread.append(one)
                continue
            hints = get_type_hints(one.annotation, include_extras=True)
            kept = [f for f in dataclasses.fields(one.annotation) if f.name not in without]
            groups[one.name] = one.annotation, [f.name for f in kept]
            spread += [
                one.replace(
                    name=f.name, annotation=hints[f.name], default=defaults.get(f.name, f.default)
                )
                for f in kept
            ]

        def run(**given: Any) -> None:
            made = {
                name: kind(**{option: given.pop(option) for option in kept})
                for name, (kind, kept) in groups.items()
            }
            body(**made, **given)

        run.__name__, run.__doc__ = body.__name__, body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in spread}
        run.__signature__ = inspect.Signature(spread)  # type: ignore[attr-defined]
        app.command()(run)
        return body

    return register


def claimed(box: Any, given: str | None, example: str = "eps=1") -> Any:
    """The claim that was given, or that of a mechanism of the zoo."""
    from dpassay.privacy.claim_parsing import claim

    own = getattr(box, "claim", None)
    if given is None and own is None:
        raise InvalidInput(f'what does it claim? Give --claim "{example}"')
    return own if given is None else claim(given)
