"""Every exception dpassay raises.

DpassayError
├── InvalidInput (ValueError)       an argument, a file or a claim is wrong; nothing was drawn
│   ├── NotApplicable               outputs like these are nothing for the loss that was asked for
│   ├── NotEnoughDraws              too few draws to conclude anything
│   │   └── TooManyAskedFor         more draws were asked for than there are
│   └── UnreadableFile              a file of outputs or results that cannot be used
├── MechanismError                  the mechanism misbehaved; `.samples` holds the draws made before
│   ├── MechanismRaised             it raised an exception, SystemExit included
│   ├── MechanismTimedOut           one call took longer than the time-out
│   ├── BadOutput                   wrong count, wrong shape, or a type with no canonical form
│   ├── InputChanged                it changed its input in place
│   ├── WorkerDied                  a process that drew was killed or crashed
│   └── DependentDraws              draws are copies of each other
├── StoreError                      a store of draws cannot be used, or not for these draws
├── NoClosedForm                    the truth is not known exactly for this mechanism and pair
└── MissingExtra (ImportError)      an optional dependency is not installed
AuditTooWeak (AssertionError)       a test of `dpassay.testing` could have missed a large violation
Interrupted (KeyboardInterrupt)     Ctrl-C while drawing; `.drawn` says how much there was
Terminated (BaseException)          a signal that ends the command line: SIGTERM or SIGHUP
DependenceWarning (UserWarning)     the draws look dependent; every guarantee assumes they are not
StoreWarning (UserWarning)          a part of a store is damaged and was left out or drawn again
"""

from __future__ import annotations

import sys
import warnings
from typing import Any


class DpassayError(Exception):
    """Base of every error dpassay raises on purpose."""


class InvalidInput(DpassayError, ValueError):
    """An argument, a file or a claim is wrong."""


class NotApplicable(InvalidInput):
    """Outputs like these are nothing for the loss that was asked for."""


class NotEnoughDraws(InvalidInput):
    """More draws were asked for than there are, or too few to conclude anything."""


class TooManyAskedFor(NotEnoughDraws):
    """More draws were asked for than there are: an argument is wrong."""


class UnreadableFile(InvalidInput):
    """A file of outputs or results cannot be used."""


class MechanismError(DpassayError):
    """The mechanism misbehaved. `samples` holds the draws made before, or None."""

    samples: Any = None


class MechanismRaised(MechanismError):
    """The mechanism raised an exception, or called sys.exit."""


class MechanismTimedOut(MechanismError):
    """One call of the mechanism took longer than the time-out."""


class BadOutput(MechanismError):
    """The mechanism returned the wrong count, the wrong shape or an unusable type."""


class InputChanged(MechanismError):
    """The mechanism changed its input in place: later draws would be on another input."""


class WorkerDied(MechanismError):
    """A process that drew was killed or crashed, also when its block was tried again."""


class DependentDraws(MechanismError):
    """Draws that should be independent are copies of each other."""


class StoreError(DpassayError):
    """A store of draws cannot be used: another mechanism's, in use, full, read-only or damaged."""


class NoClosedForm(DpassayError):
    """The truth is not known exactly for this mechanism and pair."""


class MissingExtra(DpassayError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'dpassay[{extra}]'")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while drawing."""

    def __init__(self, drawn: int, asked: int, kept: str = "") -> None:
        super().__init__(f"interrupted after {drawn:,} of {asked:,} draws per side{kept}")
        self.drawn = drawn
        self.asked = asked


class Terminated(BaseException):
    """A signal that ends the command line, other than Ctrl-C; `signum` is its number."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"ended by signal {signum}")
        self.signum = signum


class DependenceWarning(UserWarning):
    """The draws look dependent, and every guarantee assumes independent draws."""


class StoreWarning(UserWarning):
    """A part of a store of draws is damaged: it was left out, or set aside and drawn again."""


class AuditTooWeak(AssertionError):
    """The test could have missed a large violation; `verdict.blind` says why.

    `verdict` is None where there were too few draws to test at all.
    """

    def __init__(self, message: str, verdict: Any) -> None:
        super().__init__(message)
        self.verdict = verdict


def in_package(frame: Any) -> bool:
    """Whether a frame of a stack runs code of this package."""
    return str(frame.f_globals.get("__name__")).startswith("dpassay.")


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and in_package(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
