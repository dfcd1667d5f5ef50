"""How a case of the fuzz run ends: a result, an error of the package, or a defect."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from dpassay.errors import DpassayError, Interrupted

#: Seconds a case may take. Code that does not come back to Python is ended, with a trace, after more.
LIMIT, LAST = 20.0, 120.0


@dataclass(frozen=True)
class Case:
    """A call, what it is given in words, and the types of result that the documentation promises."""

    label: str
    run: Callable[[], Any]
    results: tuple[type, ...]
    #: Errors beyond those of the package that the documentation promises.
    promised: tuple[type[BaseException], ...] = ()


class _Hang(BaseException):
    """Not an Exception, so that nothing on the way takes it for an error of a mechanism."""


def ended(case: Case) -> str:
    """ "result" (or an exit status), the name of an error of the package, or "defect: …"."""
    try:
        with _limited(), _silent():
            found = case.run()
            if not isinstance(found, case.results):
                return f"defect: returned a {type(found).__name__}"
            return f"status {found}" if isinstance(found, int) else "result"
    except (DpassayError, Interrupted, *case.promised) as error:
        return type(error).__name__ if str(error) else f"defect: an empty {type(error).__name__}"
    except _Hang:
        return "defect: hang"
    except BaseException as error:
        return f"defect: {type(error).__name__}: {str(error)[:200]!a}"


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def up(signum: int, frame: Any) -> NoReturn:
        raise _Hang

    before = signal.signal(signal.SIGALRM, up)
    faulthandler.dump_traceback_later(LAST, exit=True, file=sys.__stderr__)
    signal.setitimer(signal.ITIMER_REAL, LIMIT, 1.0)  # again, if the first is lost on the way
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
