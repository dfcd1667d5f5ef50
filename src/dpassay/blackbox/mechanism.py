"""The black box: `mechanism(data, size, rng)` returns `size` independent outputs on `data`.

Adapters turn what people have into that: `from_function` a function of one output per call,
`from_command` a program. An adapter may say four things about itself, read with `getattr`:

    block        how many outputs to ask for in one call (a stream of randomness each)
    one_by_one   True if every output is a call of its own, so that few may be asked for at a time
    pool         "threads" (default: array code releases the GIL) or "processes"
    replayable   False if it draws from a randomness of its own, so that no seed brings it back
"""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from dpassay import checks
from dpassay.errors import BadOutput, InvalidInput, MechanismRaised, MechanismTimedOut
from dpassay.outputs.templates import Outcome

__all__ = ["Mechanism", "Outcome", "check_mechanism", "from_command", "from_function"]

#: Outputs asked for in one call of a vectorised mechanism.
BLOCK = 1 << 16
#: Outputs handed on at once where every output is a call.
CALLS = 256
#: The tail of a program's stderr quoted in an error.
_STDERR_TAIL = 2000


class Mechanism(Protocol):
    """What dpassay audits."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator, /) -> Any:
        """Return `size` independent outputs on `data`."""


def _own(output: Any) -> Any:
    """The output; a copy of an array, into which the function may write the next one."""
    return output.copy() if isinstance(output, np.ndarray) else output


@dataclass(frozen=True)
class FunctionMechanism:
    """A function that returns one output per call, as a mechanism."""

    function: Callable[..., Any]
    takes_rng: bool
    block: ClassVar[int] = CALLS
    one_by_one: ClassVar[bool] = True
    pool: ClassVar[str] = "processes"

    @property
    def replayable(self) -> bool:
        """Whether the seed decides the outputs."""
        return self.takes_rng

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Call the function `size` times."""
        given = (data, rng) if self.takes_rng else (data,)
        return [_own(self.function(*given)) for _ in range(size)]

    def __str__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))


class KeywordMechanism(FunctionMechanism):
    """A function that takes its generator by the name `rng`."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Call the function `size` times."""
        return [_own(self.function(data, rng=rng)) for _ in range(size)]


def from_function(function: Callable[..., Any]) -> FunctionMechanism:
    """Wrap a function that returns one output per call.

    `function(data)` brings its own randomness: results then say "not replayable", and it runs in
    one process unless workers are asked for. `function(data, rng)` draws from the
    `numpy.random.Generator` it is given, replays from a seed and parallelises freely; so does any
    function with a parameter `rng`, wherever it stands. What else it needs is bound beforehand:
    `functools.partial(function, epsilon=1.0)`.

    >>> import dpassay as dp
    >>> coin = dp.from_function(lambda bit, rng: bit if rng.random() < 0.75 else 1 - bit)
    >>> coin(1, 5, np.random.default_rng(0))
    [1, 1, 1, 1, 0]
    """
    if not callable(function):
        raise InvalidInput(f"function must be callable, got {checks.shown(function)}")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return FunctionMechanism(function, takes_rng=False)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = any(p.name == "rng" and p.kind is not p.POSITIONAL_ONLY for p in parameters[1:])
    second = len(positional) > 1 and positional[1].name == "rng"
    others = [  # what would be missing
        p.name
        for p in parameters
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p is not parameters[0]
        and p.name != "rng"
    ]
    if not positional and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise InvalidInput(
            f"{_name(function)} must take (data) or (data, rng), but takes "
            f"{inspect.signature(function)}"
        )
    if not others:
        if by_name and not second:
            return KeywordMechanism(function, takes_rng=True)
        return FunctionMechanism(function, takes_rng=second)
    if len(others) == 1 and not by_name and _is_generator(positional[1:2], others[0]):
        return FunctionMechanism(function, takes_rng=True)
    if others[0] in _SIZES and len(others) + by_name == 2:
        raise InvalidInput(
            f"{_name(function)}{inspect.signature(function)} is a mechanism already; pass it as it is, "
            "without from_function"
        )
    bound = ", ".join(f"{name}=…" for name in others)
    raise InvalidInput(
        f"{_name(function)} must take (data) or (data, rng), but takes {inspect.signature(function)}; "
        f"bind the rest: dp.from_function(functools.partial({_name(function)}, {bound}))"
        + ("" if by_name else ", and call a parameter that is a random generator `rng`")
    )


#: What a number of outputs is called.
_SIZES = ("size", "n", "count", "number", "num", "draws", "samples", "n_samples", "k", "m")


def _is_generator(second: list[inspect.Parameter], required: str) -> bool:
    """Whether the one parameter that is required besides the data is a generator, by its name or type."""
    if not second or second[0].name != required:
        return False
    name, kind = required.lower(), str(second[0].annotation)
    told = any(part in name for part in ("rng", "rand", "gen"))
    return told or len(name.strip("_")) <= 1 or "Generator" in kind


@dataclass(frozen=True)
class CommandMechanism:
    """A program as a mechanism; see `from_command`."""

    argv: tuple[str, ...]
    timeout: float | None = None
    env: dict[str, str] | None = field(default=None, hash=False)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Run the program once for `size` outputs."""
        seed = int(rng.integers(2**63))
        request = json.dumps({"data": _jsonable(data), "size": size, "seed": seed})
        try:
            done = subprocess.run(
                self.argv,
                input=request + "\n",
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
                env=self.env,
            )
        except subprocess.TimeoutExpired as expired:
            tail = _tail(expired.stderr)
            raise MechanismTimedOut(f"{self} took longer than {self.timeout:g} s{tail}") from None
        except OSError as error:
            raise MechanismRaised(f"{self} could not be started: {error}") from None
        if done.returncode != 0:
            raise MechanismRaised(
                f"{self} ended with exit status {done.returncode}{_tail(done.stderr)}"
            )
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        if len(lines) != size:
            raise BadOutput(
                f"{self} wrote {len(lines)} lines for size={size}; it must write one JSON value "
                f"a line, `size` of them{_tail(done.stderr)}"
            )
        outputs = []
        for number, line in enumerate(lines, start=1):
            try:
                outputs.append(json.loads(line))
            except ValueError as error:
                raise BadOutput(
                    f"{self}: line {number} is not JSON ({error}): {checks.shown(line)}"
                    f"{_tail(done.stderr)}"
                ) from None
        return outputs

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


def check_mechanism(mechanism: Any) -> Mechanism:
    """Explain, before the first draw, what is wrong with a mechanism's signature."""
    if not callable(mechanism):
        drawn = "; outputs that were drawn already go in as dp.from_samples(p, q), in its place"
        raise InvalidInput(
            f"a mechanism must be callable as mechanism(data, size, rng), got "
            f"{checks.shown(mechanism)}{drawn if hasattr(mechanism, '__len__') else ''}"
        )
    try:
        signature = inspect.signature(mechanism)
    except (TypeError, ValueError):
        return mechanism  # type: ignore[no-any-return]
    try:
        signature.bind(0, 1, None)
    except TypeError:
        hint = "it must accept (data, size, rng) and return `size` independent outputs"
        for arguments in ((0,), (0, None)):
            try:
                signature.bind(*arguments)
            except TypeError:
                continue
            hint = "if it returns one output per call, wrap it: dp.from_function(…)"
        raise InvalidInput(f"{_name(mechanism)}{signature} is not a mechanism; {hint}") from None
    names = [
        p.name
        for p in signature.parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if "rng" in names and names.index("rng") != 2:
        raise InvalidInput(
            f"{_name(mechanism)}{signature} is not a mechanism: it would be called as (data, size, rng), "
            "and its `rng` is not the third argument; if it returns one output per call, wrap it: "
            "dp.from_function(…)"
        )
    return mechanism  # type: ignore[no-any-return]


def _jsonable(data: Any) -> Any:
    try:
        return json.loads(json.dumps(data, default=lambda value: value.tolist()))
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput(
            f"a command needs inputs that can be written as JSON, got {checks.shown(data)}"
        ) from None


def _tail(stderr: Any) -> str:
    text = stderr.decode(errors="replace") if isinstance(stderr, bytes) else (stderr or "")
    text = text.strip()[-_STDERR_TAIL:]
    return f"; its stderr ends with:\n{text}" if text else ""


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
