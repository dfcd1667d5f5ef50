"""Signals that raise exceptions, held back while a process is started.

Ctrl-C raises KeyboardInterrupt between any two bytecodes of the main thread. In the hooks that Python
runs after a fork exceptions are printed and dropped, so that Ctrl-C would be lost; in the middle of
`subprocess.Popen` nobody would know of the process that was started.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

#: Those that end programs; Windows has no SIGHUP.
_SIGNALS = [one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP")]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Call the handlers of SIGINT, SIGTERM and SIGHUP after the block, not within it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread alone
        return
    came: list[tuple[int, Any]] = []
    handlers: dict[signal.Signals, Any] = {}
    try:
        for one in _SIGNALS:
            handler = signal.getsignal(one)
            if callable(handler):
                handlers[one] = handler
                signal.signal(one, lambda number, frame: came.append((number, frame)))
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        for number, frame in came:
            handlers[signal.Signals(number)](number, frame)
