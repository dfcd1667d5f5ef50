"""What commands read and write: targets, files, pairs, sampling, JSON, pages."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import sys
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any

import typer

from dpassay.errors import InvalidInput


@dataclass(frozen=True)
class Files:
    """Two files of outputs and what was typed about their columns, or a store of draws."""

    paths: tuple[Path, Path] | None
    columns: str | None
    drop: str | None
    store: Path | None = None
    max_bytes: int | None = None

    def read(self, seed: int) -> Any:
        """The outputs as a pool."""
        from dpassay.sampling.collected import Store, from_samples

        if self.paths is None:
            assert self.store is not None
            return Store(self.store).samples()
        columns, drop = _names(self.columns), _names(self.drop)
        return from_samples(
            *self.paths, columns=columns, drop=drop, max_bytes=self.max_bytes, rng=seed
        )


def _names(typed: str | None) -> list[str] | None:
    """Names between commas; one that holds a comma stands in double quotes."""
    if typed is None:
        return None
    return [name.strip() for name in next(csv.reader([typed], skipinitialspace=True), [])]


def source(
    target: str | None,
    command: str | None,
    files: Files,
    pair: tuple[str, str] | None,
    pairs: Path | None,
    neighbours: str | None,
    per_call: bool,
    seed: int,
) -> tuple[Any, Any]:
    """The mechanism and its pairs, or samples and None."""
    from dpassay.cli import targets

    given: list[Any] = [target, command, files.paths]
    if not any(given):
        given.append(files.store)  # to look at; else to draw into
    if target is not None and files.paths is not None:
        raise InvalidInput(
            f"{target!r} stands by itself and is read as a mechanism, but there are --samples; names of "
            "columns go between commas without spaces, as in --drop id,time"
        )
    if sum(one is not None for one in given) != 1:
        raise InvalidInput("give exactly one of TARGET, --command, --samples and --store")
    if files.paths is not None and files.store is not None:
        raise InvalidInput("samples are files already: leave --store out")
    if target is None and command is None:
        if pair or pairs or neighbours:
            raise InvalidInput("samples already belong to a pair: leave --pair out")
        return files.read(seed), None
    if files.columns is not None or files.drop is not None:
        raise InvalidInput("--columns and --drop choose among the columns of --samples")
    box = targets.program(command) if command else targets.mechanism(str(target), per_call=per_call)
    return box, targets.pairs(pair, pairs, neighbours, box)


def live(source: Any) -> bool:
    """Whether there is something to draw from."""
    from dpassay.sampling.samples import Samples

    return not isinstance(source, Samples)


#: What is closed when a command ends.
held = contextlib.ExitStack()


def sampling(
    workers: int,
    dask: str | None,
    quiet: bool,
    outcomes: bool,
    store: Path | None = None,
    identity: str | None = None,
) -> Any:
    """How to draw."""
    from dpassay.sampling.draw import Sampling

    return Sampling(
        workers=workers,
        executor=None if dask is None else _cluster(dask, workers),
        on_error="outcome" if outcomes else "raise",
        progress=False if quiet else None,
        store=store,
        identity=identity,
    )


def _cluster(address: str, workers: int) -> Any:
    """A client of a scheduler, until the command ends."""
    from dpassay.sampling.executors import connected

    if workers != 1:
        raise InvalidInput("the cluster has its own workers: give one of --workers and --dask")
    client = held.enter_context(connected(address))
    if not client.nthreads():
        print(f"dpassay: note: {address} has no workers yet: waiting for them", file=sys.stderr)
    return client


def write_json(place: str | None, text: str) -> None:
    """Write a result to a file, or to stdout if the place is "-"."""
    if place == "-":
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:  # characters are in strings alone, where JSON can escape them
            text = re.sub(r"[^\x00-\x7f]", lambda found: dumps(found[0])[1:-1], text)
        typer.echo(text)
    elif place is not None:
        try:
            Path(place).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"{place} cannot be written: {error}") from None


def write_report(place: Path, results: Any, **more: Any) -> None:
    """Write an HTML page, or say why that cannot be."""
    from dpassay.report import write

    try:
        write(place, results, **more)
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error}") from None


def check_writable(report: Path | None, json: str | None) -> None:
    """Say before the first draw if a result cannot be written."""
    if report is not None:
        from dpassay.report import check_place, need_extras

        check_place(report)
        need_extras()
    for what, place in (("report", report), ("JSON", None if json in (None, "-") else Path(json))):
        if place is None:
            continue
        folder = place.resolve().parent
        if place.is_dir() or not folder.is_dir():
            raise InvalidInput(
                f"the {what} cannot be written to {str(place)!r}: give a file in a folder that exists"
            )
        if not os.access(place if place.exists() else folder, os.W_OK):
            raise InvalidInput(
                f"the {what} cannot be written to {str(place)!r}: no permission; give another place"
            )
