"""What assertions say when they fail."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import dpassay as dp
from dpassay import testing
from dpassay.panels import panel
from dpassay.testing import _refuted

NAME = "outside the space, simplified from: NaN; all others at the upper bound"


def named():
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    pair = dp.Pair(np.array([0.0]), np.array([np.nan]), name=NAME)
    return replace(verdict, witness=replace(verdict.witness, pair=pair))


def test_the_name_of_a_pair_is_not_run_into_its_inputs():
    first, _, third, *_ = _refuted(named(), 1e-6).splitlines()
    assert first == "not 0.5-DP: ε ≥ 0.7486 on [0.] and [nan]"
    assert third == f"  inputs: {NAME}"


def test_a_panel_tells_the_inputs_from_their_name():
    console = Console(width=100)
    with console.capture() as caught:
        console.print(panel(named()))
    lines = [line.strip("│ ").split(maxsplit=1) for line in caught.get().splitlines()]
    at = lines.index(["inputs", "[0.] and [nan]"])
    assert lines[at + 1] == NAME.split(maxsplit=1)


def test_an_error_of_somebody_else_keeps_its_cause(monkeypatch):
    def broken(*given, **options):
        raise RuntimeError("second") from KeyError("first")

    heard = []
    monkeypatch.setattr(testing, "audit", broken)
    monkeypatch.setattr(testing, "listeners", [heard.append])
    with pytest.raises(RuntimeError, match="second") as caught:
        testing.assert_private(dp.zoo.Laplace(), (0.0, 1.0), "eps=1")
    assert isinstance(caught.value.__cause__, KeyError)
    assert heard == [testing.NoResult("eps=1", "RuntimeError: second")]
