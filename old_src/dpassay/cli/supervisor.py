"""A command in a child process; its parent tells a verdict from everything else that ends a process.

The mechanism under audit is somebody else's code: it may call `os._exit(0)` or crash, and exit statuses
0 and 1 are verdicts. The child therefore reports its status on a pipe once its output is written. The
parent believes that report alone: a child that ends without one gives status 2 and a sentence on stderr.

Signals. Ctrl-C in a terminal reaches parent and child, `kill` only the parent, which passes it on; the
child ignores a signal that comes again within a second. There SIGINT raises KeyboardInterrupt, SIGTERM
and SIGHUP raise Terminated, so that worker processes and programs are ended before the child is. If the
parent is killed, the child ends as by SIGTERM.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from dpassay.errors import Terminated

#: Seconds in which a signal that comes again is the same one; and after which a child that does not end
#: by SIGTERM is killed.
_SAME, _GRACE = 1.0, 10.0


def say(text: str) -> None:
    """A sentence on stderr, if anybody reads it."""
    with contextlib.suppress(OSError):
        print(f"dpassay: {text}", file=sys.stderr, flush=True)


def supervised(load: Callable[[], Callable[[], int]]) -> int:
    """The exit status of a command, which is loaded and runs in a child process where there is fork."""
    if not hasattr(os, "fork"):
        return load()()
    report, alive = os.pipe(), os.pipe()
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    # nohup ignores SIGHUP
    heeded = [one for one in signals if signal.getsignal(one) is not signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, heeded)  # until either process can handle them
    child = os.fork()
    if not child:
        os.close(report[0])
        os.close(alive[1])
        return _run(load, heeded, report[1], alive[0])
    os.close(report[1])
    os.close(alive[0])
    passed = _pass_on(heeded, child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heeded)
    _, ended = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    # a process that the mechanism left behind may hold the other end
    os.set_blocking(report[0], False)
    with contextlib.suppress(BlockingIOError):
        if told := os.read(report[0], 1):
            return told[0]
    if passed:
        say(f"ended by signal {passed[-1]}")
        return 128 + passed[-1]
    status = os.waitstatus_to_exitcode(ended)
    how = f"with exit status {status}"
    if status < 0:
        how = f"by signal {-status} ({signal.strsignal(-status)})"
    say(
        f"the process ended {how} before there was a result: the mechanism ended it or crashed, or it "
        "was killed (out of memory?). A mechanism has to return its outputs or raise an exception"
    )
    return 2


def _run(
    load: Callable[[], Callable[[], int]], signals: list[signal.Signals], report: int, alive: int
) -> int:
    """Run the command and report its status, in this process and in no other that it forks."""
    me = os.getpid()
    came: list[int] = []
    last = dict.fromkeys(signals, float("-inf"))

    def stop(number: int, frame: Any) -> None:  # each signal raises at most once a second
        heeded = signal.Signals(number)
        came.append(number)
        before, last[heeded] = last[heeded], time.monotonic()
        if last[heeded] - before > _SAME:
            raise KeyboardInterrupt if heeded == signal.SIGINT else Terminated(number)

    for one in signals:
        signal.signal(one, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    try:
        command = load()  # a second thread would slow imports down
        threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
        status = command()
    except Terminated as ended:
        say(str(ended))
        status = 128 + ended.signum
    except KeyboardInterrupt:
        say("interrupted")
        status = 130
    except Exception as error:  # a package that cannot be imported
        say(f"internal error, {type(error).__name__}: {error}")
        status = 3
    if came and status in (2, 3):  # an import that a signal ended is an ImportError
        say(f"ended by signal {came[-1]}")
        status = 128 + came[-1]
    if os.getpid() == me:
        with contextlib.suppress(BrokenPipeError):  # the parent was killed
            os.write(report, bytes([status]))
    for one in signals:
        signal.signal(one, signal.SIG_DFL)  # the interpreter's shutdown needs no handlers
    return status


def _pass_on(signals: list[signal.Signals], child: int) -> list[int]:
    """Pass signals on to a child, and list them; a child that does not end by SIGTERM is killed."""
    passed: list[int] = []

    def pass_on(number: int, frame: Any) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            if number == signal.SIGALRM:
                os.kill(child, signal.SIGKILL)
                return
            passed.append(number)
            os.kill(child, number)
        if number != signal.SIGINT:
            signal.setitimer(signal.ITIMER_REAL, _GRACE)

    for one in (*signals, signal.SIGALRM):
        signal.signal(one, pass_on)
    return passed


def _end_with_parent(alive: int) -> NoReturn:
    """End this process when its parent does: the read returns then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(128 + signal.SIGTERM)
