"""What is said while draws are made."""

import re
import sys
import types

import pytest
import rich.progress
from tests.helpers import laplace_mechanism

import dpassay as dp
from dpassay.sampling import progress

PAIR = (0.0, 1.0)
PAIRS = [(0.0, 0.5), (0.0, 1.0), (0.0, 0.7)]


def test_off_a_terminal_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr("dpassay.sampling.progress.FIRST_LINE", 0.0)
    dp.draw(laplace_mechanism, PAIR, n=200_000, rng=0)
    said = capsys.readouterr().err
    assert "dpassay: drawing, 65,536 of 200,000 draws" in said
    dp.draw(laplace_mechanism, PAIR, n=200_000, rng=0, sampling=dp.Sampling(progress=False))
    assert capsys.readouterr().err == ""


def test_the_lines_of_an_audit_count_its_draws_over_all_pairs_and_stages(monkeypatch, capsys):
    monkeypatch.setattr("dpassay.sampling.progress.FIRST_LINE", 0.0)
    dp.audit(laplace_mechanism, PAIRS, "eps=2", n=200_000, rng=0)
    said = capsys.readouterr().err
    found = re.findall(r"dpassay: (\w+), ([\d,]+) of ([\d,]+) draws", said)
    assert {stage for stage, _, _ in found} <= {"learning", "testing"}
    # 50 000 a side learn on each pair, 150 000 test on one
    assert {total for _, _, total in found} == {"300,000"}
    done = [int(count.replace(",", "")) for _, count, _ in found]
    assert done == sorted(done)


class Bars:
    """The bars that were shown, each as the list of (text, done, total) it went through."""

    def __init__(self):
        self.shown, self.open = [], 0

    def watch(self, monkeypatch):
        begin, end, update = (
            getattr(rich.progress.Progress, name) for name in ("start", "stop", "update")
        )

        def started(bar):
            self.open += 1
            self.shown.append([])
            begin(bar)

        def stopped(bar):
            self.open -= 1
            end(bar)

        def updated(bar, task, **what):
            self.shown[-1].append((what["description"], what["completed"], what["total"]))
            update(bar, task, **what)

        monkeypatch.setattr(rich.progress.Progress, "start", started)
        monkeypatch.setattr(rich.progress.Progress, "stop", stopped)
        monkeypatch.setattr(rich.progress.Progress, "update", updated)


@pytest.fixture
def bars(monkeypatch):
    """Bars that come at once."""
    monkeypatch.setattr("dpassay.sampling.progress.PATIENCE", -1.0)
    seen = Bars()
    seen.watch(monkeypatch)
    return seen


SHOWN = {"rng": 0, "sampling": dp.Sampling(progress=True)}
DISCRETE = dp.zoo.DiscreteLaplace(1.0)
BOX = dp.zoo.Laplace(1.0)
CALLS = {
    "audit": (lambda: dp.audit(BOX, PAIRS, "eps=2", n=4000, **SHOWN), 3 * 1000 + 3000),
    "audit of claims that choose different pairs": (
        lambda: dp.audit(BOX, PAIRS, ["eps=2", "mu=1"], n=4000, **SHOWN),
        None,
    ),
    "audit in a time": (lambda: dp.audit(BOX, PAIR, "eps=2", seconds=0.5, **SHOWN), None),
    "bound": (lambda: dp.bound(BOX, PAIRS, "eps", n=4000, **SHOWN), 3 * 1000 + 3000),
    "verify": (
        lambda: dp.verify(DISCRETE, [(0, 1), (0, 2)], "eps=3, delta=.1", n=4000, **SHOWN),
        8000,
    ),
    "estimate": (lambda: dp.estimate(BOX, PAIR, n=4000, **SHOWN), 4000),
    "monitor": (lambda: dp.monitor(BOX, PAIRS, "eps=2", max_n=2000, **SHOWN), 2000),
    "hunt": (
        lambda: dp.hunt(BOX, dp.inputs.Real(0, 1), "eps=3", budget=20_000, **SHOWN),
        None,
    ),
    "pure.estimate": (lambda: dp.pure.estimate(BOX, PAIR, n=100_000, **SHOWN), 100_000),
    "pure.lower_bound": (
        lambda: dp.pure.lower_bound(BOX, PAIRS, n=1000, n_bound=2000, **SHOWN),
        5000,
    ),
    "renyi, softmax": (lambda: dp.renyi.lower_bound(BOX, PAIRS, order=2, n=2000, **SHOWN), 6000),
    "renyi, variational": (
        lambda: dp.renyi.lower_bound(
            BOX, PAIR, order=2, n=2000, method=dp.renyi.Variational(), **SHOWN
        ),
        2000,
    ),
    "spectrum": (lambda: dp.spectrum.estimate(BOX, PAIR, epsilons=[0.5], n=2000, **SHOWN), 2000),
    "spectrum.relative": (
        lambda: dp.spectrum.relative(
            lambda data, size, rng: sum(data) + rng.laplace(size=size),
            [[0, 1, 1], [1, 1, 1]],
            epsilons=[0.5],
            n=400,
            **SHOWN,
        ),
        None,
    ),
    "tradeoff.point": (lambda: dp.tradeoff.point(BOX, PAIR, 1.0, n=2000, **SHOWN), 2000),
    "tradeoff.audit": (lambda: dp.tradeoff.audit(BOX, PAIR, "mu=2", n=3000, **SHOWN), 3000),
    "replay": (
        lambda: dp.replay(
            dp.audit(BOX, PAIR, "eps=.5", n=2000, rng=0, sampling=dp.Sampling(progress=False)),
            BOX,
            n=3000,
            **SHOWN,
        ),
        3000,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_one_bar(name, bars):
    call, total = CALLS[name]
    call()
    assert len(bars.shown) == 1
    assert bars.open == 0
    (states,) = bars.shown
    done = [count for _, count, _ in states]
    assert done == sorted(done)
    assert all(count <= of for _, count, of in states)
    if name != "monitor":  # which may stop before
        assert states[-1][1] == states[-1][2]
    if total is not None:  # known before the first draw
        assert {of for _, _, of in states} == {total}


def test_the_bar_names_its_stages(bars):
    CALLS["audit"][0]()
    texts = [text for text, _, _ in bars.shown[0]]
    assert list(dict.fromkeys(texts)) == ["learning", "testing"]


def test_the_bar_of_a_hunt_ends_with_its_audit(bars):
    found = dp.hunt(BOX, dp.inputs.Real(0, 1), "eps=3", budget=20_000, **SHOWN)
    texts = list(dict.fromkeys(text.partition(",")[0] for text, _, _ in bars.shown[0]))
    assert texts == ["hunting", "learning", "testing"]
    assert bars.shown[0][-1][1] == found.draws


def test_a_bar_is_taken_down_when_the_mechanism_fails(bars):
    def fails_later(x, size, rng):
        if size > 800:
            raise RuntimeError("no")
        return rng.laplace(size=size)

    with pytest.raises(dp.errors.MechanismRaised):
        dp.audit(fails_later, PAIR, "eps=1", n=4000, **SHOWN)
    assert len(bars.shown) == 1
    assert bars.open == 0
    bars.shown.clear()
    dp.draw(BOX, PAIR, n=1000, **SHOWN)  # a bar of its own again
    assert len(bars.shown) == 1


def test_what_is_asked_to_be_quiet_is_quiet(bars):
    dp.audit(BOX, PAIRS, "eps=2", n=4000, rng=0, sampling=dp.Sampling(progress=False))
    assert bars.shown == []


def test_notebooks_have_a_bar_of_their_own(monkeypatch):
    drawn = []

    class Handle:
        def update(self, bar):
            drawn.append(bar)

    def display(bar, display_id):
        drawn.append(bar)
        return Handle()

    fake = types.SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Progress(1000, "testing") as bar:
        for _ in range(10):
            now[0] += 0.5
            bar.advance(100)
    assert drawn[0].startswith('<progress max="1000" value="100">')
    assert "1,000 of 1,000 draws" in drawn[-1] or "900 of 1,000 draws" in drawn[-1]
    assert 4 <= len(drawn) <= 6  # once a second


def test_claims_of_a_family_that_take_long_are_counted(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE", -1.0)
    family = dp.Family(lambda noise: dp.GaussianDP(1 / noise), 0.5, 2.0)
    asked = {"family": family, "n": 400, "rng": 0}
    dp.bound(dp.zoo.Gaussian(1.0), (0.0, 1.0), "eps, delta=1e-5", **asked)
    assert "claims of the family tried in 0 s" in capsys.readouterr().err
    quiet = dp.Sampling(progress=False)
    dp.bound(dp.zoo.Gaussian(1.0), (0.0, 1.0), "eps, delta=1e-5", **asked, sampling=quiet)
    assert not capsys.readouterr().err
