"""The black box: `mechanism(data, size, rng)` returns `size` independent outputs on `data`.

Adapters make other things mechanisms: `from_function` a function of one output per call, `from_command` a
program, `with_features` adds features to the outputs. An adapter may have these attributes:

    block        how many outputs to ask for in one call (a stream of randomness each)
    one_by_one   True if every output is a call of its own, so that few may be asked for at a time
    pool         "threads" (default: array code releases the GIL) or "processes"
    replayable   False if it has its own randomness, so that a seed does not reproduce its outputs
    stop         ends the calls that run in other threads, with KeyboardInterrupt there
"""

from __future__ import annotations

import inspect
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from dpassay import validation as checks
from dpassay.blackbox.library_objects import adapted
from dpassay.errors import BadOutput, InvalidInput, MechanismRaised, MechanismTimedOut
from dpassay.interrupts import held_back
from dpassay.outputs.templates import Outcome

__all__ = [
    "Mechanism",
    "Outcome",
    "check_mechanism",
    "from_command",
    "from_function",
    "with_features",
]

#: Outputs asked for in one call of a vectorised mechanism.
BLOCK = 1 << 16
#: Outputs handed on at once where every output is a call.
CALLS = 256
#: The tail of a program's stderr quoted in an error.
_STDERR_TAIL = 2000
#: Programs that run now.
_running: dict[subprocess.Popen[str], CommandMechanism] = {}
#: Seconds within which Ctrl-C, which a program was ended by, reaches this process as well.
_CTRL_C = 0.2
#: Names of a parameter that is a number of outputs.
_SIZES = ("size", "n", "count", "number", "num", "draws", "samples", "n_samples", "k", "m")


class Mechanism(Protocol):
    """What dpassay audits."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> Any:
        """Return `size` independent outputs on `data`."""


@dataclass(frozen=True)
class FunctionMechanism:
    """A function that returns one output per call, as a mechanism."""

    function: Callable[..., Any]
    takes_rng: bool
    by_name: bool = False  # whether it takes its generator as `rng=` alone
    block: ClassVar[int] = CALLS
    one_by_one: ClassVar[bool] = True
    pool: ClassVar[str] = "processes"

    @property
    def replayable(self) -> bool:
        return self.takes_rng

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        outputs = (self._one(data, rng) for _ in range(size))
        # a function may write the next output into the same array
        return [one.copy() if isinstance(one, np.ndarray) else one for one in outputs]

    def _one(self, data: Any, rng: np.random.Generator) -> Any:
        if self.by_name:
            return self.function(data, rng=rng)
        return self.function(data, rng) if self.takes_rng else self.function(data)

    def __str__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))


def from_function(function: Callable[..., Any]) -> FunctionMechanism:
    """Wrap a function that returns one output per call.

    `function(data)` brings its own randomness: results then say that the same seed need not give the
    same draws, and it runs in one process unless workers are asked for. `function(data, rng)` draws from
    the `numpy.random.Generator` it is given, replays from a seed and parallelises freely; so does any
    function with a parameter `rng`, wherever it stands. What else it needs is bound beforehand:
    `functools.partial(function, epsilon=1.0)`.

    >>> import dpassay as dp
    >>> coin = dp.from_function(lambda bit, rng: bit if rng.random() < 0.75 else 1 - bit)
    >>> coin(1, 5, np.random.default_rng(0))
    [1, 1, 1, 1, 0]
    """
    checks.require(callable(function), f"function must be callable, got {checks.shown(function)}")
    signature = _signature(function)
    if signature is None:
        return FunctionMechanism(function, takes_rng=False)
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    if not positional and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise InvalidInput(
            f"{_name(function)} must take (data) or (data, rng), but takes {signature}"
        )
    second, others = positional[1:2], parameters[1:]
    by_name = any(p.name == "rng" and p.kind is not p.POSITIONAL_ONLY for p in others)
    required = [p for p in others if p.default is p.empty and p.name != "rng"]
    missing = [p for p in required if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not missing:
        in_place = any(p.name == "rng" for p in second)
        return FunctionMechanism(function, by_name or in_place, by_name and not in_place)
    if missing == second and not by_name and _is_generator(missing[0]):
        return FunctionMechanism(function, takes_rng=True)
    if missing[0].name in _SIZES and len(missing) + by_name == 2:
        raise InvalidInput(
            f"{_name(function)}{signature} is a mechanism already; pass it as it is, without "
            "from_function"
        )
    bound = ", ".join(f"{p.name}=…" for p in missing)
    raise InvalidInput(
        f"{_name(function)} must take (data) or (data, rng), but takes {signature}; "
        f"bind the rest: dp.from_function(functools.partial({_name(function)}, {bound}))"
        + ("" if by_name else ", and call a parameter that is a random generator `rng`")
    )


def _is_generator(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is a random generator, by its name or its annotation."""
    name = parameter.name.lower()
    named = any(part in name for part in ("rng", "rand", "gen")) or len(name.strip("_")) <= 1
    return named or "Generator" in str(parameter.annotation)


@dataclass(frozen=True)
class CommandMechanism:
    """A program as a mechanism; see `from_command`."""

    argv: tuple[str, ...]
    timeout: float | None = None
    env: dict[str, str] | None = field(default=None, hash=False)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        asked = {"data": data, "size": size, "seed": int(rng.integers(2**63))}
        try:
            request = json.dumps(asked, default=lambda value: value.tolist())
        except (TypeError, ValueError, AttributeError, RecursionError):
            raise InvalidInput(
                f"a command needs inputs that can be written as JSON, got {checks.shown(data)}"
            ) from None
        status, written, errors = self._run(request + "\n")
        if status != 0:
            raise MechanismRaised(f"{self} ended with exit status {status}{_tail(errors)}")
        lines = [line for line in written.splitlines() if line.strip()]
        if len(lines) != size:
            raise BadOutput(
                f"{self} wrote {len(lines)} lines for size={size}; it must write one JSON value "
                f"a line, `size` of them{_tail(errors)}"
            )
        outputs = []
        for number, line in enumerate(lines, start=1):
            try:
                outputs.append(checks.read_json(line))
            except ValueError as error:
                what = f"line {number} is not JSON ({error}): {checks.shown(line)}"
                raise BadOutput(f"{self}: {what}{_tail(errors)}") from None
        return outputs

    def _run(self, request: str) -> tuple[int, str, str]:
        """The exit status, stdout and stderr of the program; it ends before this call does."""
        process = None
        try:
            with held_back():
                pipe = subprocess.PIPE
                process = subprocess.Popen(
                    self.argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self.env
                )
                _running[process] = self
            written, errors = process.communicate(request, timeout=self.timeout)
            if process.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
                time.sleep(_CTRL_C)
            if process not in _running:
                raise KeyboardInterrupt
            return process.returncode, written, errors
        except subprocess.TimeoutExpired as expired:
            tail = _tail(expired.stderr)
            raise MechanismTimedOut(f"{self} took longer than {self.timeout:g} s{tail}") from None
        except OSError as error:
            raise MechanismRaised(f"{self} could not be started: {error}") from None
        finally:
            if process is not None:
                _running.pop(process, None)
                with process:  # closes its pipes and waits
                    process.kill()

    def stop(self) -> None:
        """End its programs that run in other threads."""
        for process, mechanism in [*_running.items()]:
            if mechanism is self:
                _running.pop(process, None)
                process.kill()

    def __str__(self) -> str:
        return "command " + " ".join(self.argv)


def from_command(argv: Sequence[str], *, timeout: float | None = None) -> CommandMechanism:
    """A program as a mechanism; no shell is involved.

    For each block of outputs the program is started once. It reads one JSON object
    ``{"data": …, "size": …, "seed": …}`` from stdin and writes `size` outputs to stdout, one JSON
    value a line. It must take its randomness from the seed. `timeout` is in seconds per start.
    """
    if isinstance(argv, str) or not argv or not all(isinstance(part, str) for part in argv):
        raise InvalidInput(
            f"a command must be a list of strings such as ['./prog', '--fast'], got "
            f"{checks.shown(argv)}; a single string is not split, since no shell is involved"
        )
    if timeout is not None:
        timeout = checks.real("timeout", timeout, above=0.0)
    return CommandMechanism(tuple(argv), timeout)


@dataclass(frozen=True)
class FeaturedMechanism:
    """A mechanism whose outputs carry features of the caller's; see `with_features`."""

    mechanism: Any
    features: tuple[tuple[str, Callable[..., Any], bool], ...]  # name, function, takes the pair
    pair: tuple[Any, Any] | None = None
    pool: ClassVar[str] = "processes"  # features are Python functions

    @property
    def block(self) -> int:
        """Of the mechanism itself, and no more outputs than are held as objects."""
        return min(int(getattr(self.mechanism, "block", CALLS)), CALLS)

    @property
    def one_by_one(self) -> bool:
        return bool(getattr(self.mechanism, "one_by_one", False))

    @property
    def replayable(self) -> bool:
        return bool(getattr(self.mechanism, "replayable", True))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Each output as {"output": …, feature: value, …}."""
        outputs = self.mechanism(data, size, rng)
        if not hasattr(outputs, "__iter__"):
            return outputs  # what is wrong with it is said where outputs are read
        return [{"output": output, **self._features(output)} for output in outputs]

    def _features(self, output: Any) -> dict[str, Any]:
        found = {}
        for name, function, takes_pair in self.features:
            try:
                found[name] = function(output, self.pair) if takes_pair else function(output)
            except Exception as error:
                raise BadOutput(
                    f"a feature ({name}) raised {type(error).__name__}: {error}, on the output "
                    f"{checks.shown(output)}; it must return a value for every output"
                ) from error
        return found

    def __str__(self) -> str:
        return str(getattr(self.mechanism, "__qualname__", self.mechanism))


def on_pair(mechanism: Any, pair: Iterable[Any]) -> Any:
    """The mechanism, with the two inputs for those of its features that take them."""
    if not isinstance(mechanism, FeaturedMechanism):
        return mechanism
    first, second = pair
    return replace(mechanism, pair=(first, second))


def with_features(mechanism: Any, features: Any) -> Any:
    """The mechanism with named features beside each output, for what an analyst knows about outputs.

    features  functions of one output, or of an output and the pair of inputs, that return a number, a
              text or a tuple; None or an empty list for none

    A function of an output is post-processing: a useless feature costs power, never validity.
    `audit`, `bound`, `monitor`, `verify`, `hunt` and `replay` do this with `features=[…]`.

    >>> import dpassay as dp
    >>> def names(x, rng):
    ...     return [str(k) for k in rng.permutation(9)[: 3 + x]]
    >>> dp.with_features(dp.from_function(names), [len])(1, 1, np.random.default_rng(0))
    [{'output': ['4', '5', '2', '6'], 'len': 4}]
    """
    if features is None or (isinstance(features, (list, tuple)) and not features):
        return mechanism
    mechanism = check_mechanism(mechanism)
    given = [features] if callable(features) else features
    if not isinstance(given, (list, tuple)) or not all(callable(one) for one in given):
        raise InvalidInput(
            f"features must be a list of functions of one output, got {checks.shown(features)}"
        )
    found: dict[str, tuple[str, Callable[..., Any], bool]] = {}
    for k, function in enumerate(given, start=1):
        name = str(getattr(function, "__name__", f"feature {k}"))
        name = f"feature {k}" if name == "<lambda>" or name == "output" or name in found else name
        found[name] = name, function, _takes_two(function)
    return FeaturedMechanism(mechanism, tuple(found.values()))


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a feature requires a second argument, the pair."""
    signature = _signature(function)
    parameters = [] if signature is None else signature.parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
    checks.require(
        len(required) <= 2,
        f"a feature takes an output, or an output and the pair; {_name(function)} takes {signature}",
    )
    return len(required) == 2


def check_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism; before the first draw it is explained what is wrong with its signature."""
    mechanism = adapted(mechanism)
    if not callable(mechanism):
        hint = ""
        if checks.has(mechanism, "__len__"):
            hint = (
                "; outputs, or two files of them, go in its place as dp.from_samples(first, second)"
            )
        if isinstance(mechanism, str):
            hint += (
                "; in Python give the function itself, or a mechanism such as dp.zoo.Laplace(1.0)"
            )
        raise InvalidInput(
            f"a mechanism must be callable as mechanism(data, size, rng), got "
            f"{checks.shown(mechanism)}{hint}"
        )
    signature = _signature(mechanism)
    if signature is None:
        return mechanism  # type: ignore[no-any-return]
    name = _name(mechanism)
    if not _accepts(signature, 3):
        hint = "it must accept (data, size, rng) and return `size` independent outputs"
        if _accepts(signature, 1) or _accepts(signature, 2):
            wrapped = "…" if name == "lambda" else name
            hint = f"if it returns one output per call, wrap it: dp.from_function({wrapped})"
            if list(signature.parameters)[1:] == ["size"]:
                hint = "it lacks a third parameter, rng, to draw from: (data, size, rng)"
        raise InvalidInput(f"{name}{signature} is not a mechanism; {hint}")
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    if "rng" in names and names.index("rng") != 2:
        raise InvalidInput(
            f"{name}{signature} is not a mechanism: it would be called as (data, size, rng), and its "
            "`rng` is not the third argument; if it returns one output per call, wrap it: "
            "dp.from_function(…)"
        )
    return mechanism  # type: ignore[no-any-return]


def _signature(function: Any) -> inspect.Signature | None:
    """The signature; None for a builtin without one."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _accepts(signature: inspect.Signature, arguments: int) -> bool:
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return False
    return True


def _tail(stderr: Any) -> str:
    text = stderr.decode(errors="replace") if isinstance(stderr, bytes) else (stderr or "")
    text = text.strip()[-_STDERR_TAIL:]
    return f"; its stderr ends with:\n{text}" if text else ""


def _name(function: Any) -> str:
    """The name as it is written where the function is defined."""
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    return name.rsplit("<locals>.", 1)[-1].replace("<lambda>", "lambda")
