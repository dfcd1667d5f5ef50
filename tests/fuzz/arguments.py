"""Arguments of the public functions and classes, one or two of them replaced by something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from tests.fuzz.running import Case
from tests.fuzz.values import OBJECTS

import dpassay as dp
from dpassay.blackbox.neighbours import Population

QUIET = dp.Sampling(progress=False)
LAPLACE = dp.zoo.Laplace(1.0)
CLASSES = dp.zoo.KaryRandomizedResponse(4, 1.0)


def _count(data: Any, size: int, rng: np.random.Generator) -> Any:
    return np.sum(data) + rng.laplace(size=size)


def _drawn(**more: Any) -> dict[str, Any]:
    return {"mechanism": LAPLACE, "n": 200, "rng": 0, "sampling": QUIET, **more}


PAIR = (0.0, 1.0)
Call = tuple[str, Callable[..., Any], dict[str, Any], tuple[type, ...]]


@cache
def calls() -> tuple[Call, ...]:
    """(name, function, arguments that work, types of its result)."""
    verdict = dp.audit(LAPLACE, PAIR, "eps=0.5", n=200, rng=0, sampling=QUIET)
    spectrum = dp.Spectrum([0.0, 0.5, 1.0], [0.4, 0.2, 0.0])
    curve = dp.TradeoffCurve([0, 0.25, 1], [1, 0.25, 0])
    renyi = dp.RenyiCurve([2, 3], [0.1, 0.2])
    claims = (dp.PureDP(1.0), dp.ApproximateDP(1.0, 0.1), dp.GaussianDP(1.0), dp.RenyiDP(2.0, 0.3))
    loss = dp.LossCurve([0, 1], [0.1, 0.2], [0.5, 0.5], [0.4, 0.6])
    number: tuple[type, ...] = (float, np.ndarray)
    space = dp.inputs
    kinds = (space.Space,)
    population = Population(lambda rows, rng: rng.normal(size=rows), rows=5)
    found: list[Call] = [
        (
            "audit",
            dp.audit,
            _drawn(pairs=PAIR, claim="eps=1", confidence=0.9, loss="auto"),
            (dp.Verdict, list),
        ),
        (
            "audit",
            dp.audit,
            _drawn(pairs=PAIR, claim="eps=1", train=0.5, details=False, relation="replace"),
            (dp.Verdict, list),
        ),
        (
            "bound",
            dp.bound,
            _drawn(pairs=PAIR, of="eps", confidence=0.9, loss="auto", train=0.5),
            (dp.LowerBound,),
        ),
        (
            "audit_counts",
            dp.audit_counts,
            {
                "hits_p": 40,
                "n_p": 100,
                "hits_q": 10,
                "n_q": 100,
                "claim": "eps=0.5",
                "confidence": 0.9,
                "likelier": "first",
            },
            (dp.Verdict,),
        ),
        (
            "plan",
            dp.plan,
            {
                "claim": "eps=1",
                "excess": 0.5,
                "power": 0.8,
                "confidence": 0.9,
                "event": 0.1,
                "train": 0.3,
            },
            (dp.Plan,),
        ),
        (
            "plan_canaries",
            dp.plan_canaries,
            {
                "claim": "eps=1, delta=1e-5",
                "canaries": 20,
                "runs": 1,
                "auc": 0.7,
                "delta": None,
                "confidence": 0.9,
                "audits": 2,
                "rng": 0,
            },
            (dp.CanaryPlan,),
        ),
        (
            "replay",
            dp.replay,
            {
                "witness": verdict,
                "mechanism": LAPLACE,
                "n": 100,
                "claim": "eps=1",
                "confidence": 0.9,
                "rng": 1,
                "sampling": QUIET,
            },
            (dp.Verdict,),
        ),
        (
            "verify",
            dp.verify,
            _drawn(
                mechanism=CLASSES,
                pairs=(0, 1),
                claim="eps=1, delta=0.1",
                confidence=0.9,
                train=0.5,
                relation="replace",
            ),
            (dp.Verification,),
        ),
        (
            "from_function",
            lambda **k: dp.draw(dp.from_function(**k), PAIR, n=20, rng=0),
            {"function": lambda x: x},
            (dp.Samples,),
        ),
        (
            "hunt",
            dp.hunt,
            {
                "mechanism": _count,
                "space": dp.inputs.Reals(0, 1, length=2),
                "claim": "eps=1",
                "budget": 5000,
                "confidence": 0.9,
                "relation": "replace",
                "user": None,
                "sensitivity": 1.0,
                "norm": "each",
                "outside": False,
                "failing": "leak",
                "loss": "auto",
                "rng": 0,
                "sampling": QUIET,
            },
            (dp.Hunt,),
        ),
        (
            "attack_rates",
            dp.attack_rates,
            {
                "scores_in": [0.1, 0.5, 0.9],
                "scores_out": [0.0, 0.4],
                "fpr": (0.1,),
                "confidence": 0.9,
            },
            (dp.AttackRates,),
        ),
        ("Canaries", dp.Canaries, {"records": ["a", "b"], "data": ["x"], "rng": 1}, (dp.Canaries,)),
        (
            "one_run",
            dp.one_run,
            {
                "scores": [0.1, 0.5, 0.9, 0.3],
                "included": [0, 1, 1, 0],
                "claim": "eps=1",
                "groups": None,
                "guesses": 4,
                "delta": None,
                "confidence": 0.9,
                "rng": 0,
            },
            (dp.Verdict, dp.LowerBound),
        ),
        (
            "Monitor",
            dp.Monitor,
            {"claim": "eps=1", "confidence": 0.9, "rng": 0, "loss": "values", "pair": PAIR},
            (dp.Monitor,),
        ),
        (
            "Monitor.update",
            lambda **k: dp.Monitor("eps=1").update(**k),
            {"p_outputs": np.arange(20.0), "q_outputs": np.arange(20.0)},
            (type(None),),
        ),
        (
            "monitor",
            dp.monitor,
            {
                "mechanism": LAPLACE,
                "pairs": PAIR,
                "claim": "eps=1",
                "max_n": 60,
                "confidence": 0.9,
                "loss": "values",
                "relation": None,
                "rng": 0,
                "sampling": QUIET,
            },
            (dp.Verdict,),
        ),
        ("estimate", dp.estimate, _drawn(pair=PAIR, loss="auto"), (dp.Profile,)),
        (
            "pure.estimate",
            dp.pure.estimate,
            _drawn(pair=PAIR, region=(-1.0, 2.0), floor=0.01, caution=1.0, bandwidth="sj"),
            (dp.Estimate,),
        ),
        (
            "pure.lower_bound",
            dp.pure.lower_bound,
            _drawn(pairs=PAIR, n_bound=50, region=None, confidence=0.9, bandwidth=0.5),
            (dp.LowerBound,),
        ),
        (
            "renyi.curve",
            dp.renyi.curve,
            _drawn(
                pair=PAIR,
                orders=[2, 3],
                confidence=0.9,
                method=dp.renyi.Softmax(),
                direction="both",
                simultaneous=True,
            ),
            (dp.RenyiCurve,),
        ),
        (
            "renyi.estimate",
            dp.renyi.estimate,
            _drawn(pair=PAIR, order=2.0, method=dp.renyi.Softmax(), direction="both"),
            (dp.Estimate,),
        ),
        (
            "renyi.lower_bound",
            dp.renyi.lower_bound,
            _drawn(pairs=PAIR, order=2.0, confidence=0.9, direction="forward"),
            (dp.LowerBound,),
        ),
        (
            "renyi.Softmax",
            dp.renyi.Softmax,
            {"floor": 0.01, "sharpness": 10.0, "correct": True, "bandwidth": "sj"},
            (dp.renyi.Softmax,),
        ),
        (
            "spectrum.estimate",
            dp.spectrum.estimate,
            _drawn(
                pair=PAIR,
                epsilons=[0.0, 0.5],
                loss="auto",
                confidence=0.9,
                plug_in="auto",
                train=0.5,
                direction="both",
            ),
            (dp.Spectrum,),
        ),
        (
            "spectrum.relative",
            dp.spectrum.relative,
            {
                "mechanism": _count,
                "databases": [[1.0, 0.0]],
                "epsilons": [0.0, 0.5],
                "n": 60,
                "loss": "auto",
                "confidence": 0.9,
                "plug_in": "auto",
                "previous": None,
                "rng": 0,
                "sampling": QUIET,
            },
            (dp.Spectrum,),
        ),
        (
            "spectrum.distributional",
            dp.spectrum.distributional,
            {
                "mechanism": _count,
                "populations": population,
                "values": [0.0, 1.0],
                "epsilons": [0.0, 0.5],
                "n": 60,
                "rows": [0],
                "batched": False,
                "loss": "auto",
                "confidence": 0.9,
                "plug_in": "auto",
                "rng": 0,
                "sampling": QUIET,
            },
            (dp.Spectrum,),
        ),
        (
            "tradeoff.audit",
            dp.tradeoff.audit,
            _drawn(
                pair=PAIR,
                claim="mu=1",
                n_locate=50,
                n_test=100,
                confidence=0.9,
                box="joint",
                loss="knn",
            ),
            (dp.Verdict,),
        ),
        (
            "tradeoff.estimate",
            dp.tradeoff.estimate,
            _drawn(
                pair=PAIR, perturbation=0.0, thresholds=[0.5, 1.0], bandwidth="sj", confidence=0.9
            ),
            (dp.TradeoffCurve,),
        ),
        (
            "tradeoff.point",
            dp.tradeoff.point,
            _drawn(pair=PAIR, threshold=1.0, confidence=0.9, box="joint", loss="knn"),
            (dp.TradeoffPoint,),
        ),
        ("draw", dp.draw, _drawn(pair=PAIR), (dp.Samples,)),
        (
            "from_samples",
            dp.from_samples,
            {
                "p": np.arange(20.0),
                "q": np.arange(20.0),
                "pair": PAIR,
                "columns": None,
                "drop": None,
                "rng": 0,
            },
            (dp.Samples,),
        ),
        (
            "Sampling",
            dp.Sampling,
            {
                "workers": 1,
                "executor": None,
                "timeout": 1.0,
                "on_error": "raise",
                "progress": False,
                "store": None,
            },
            (dp.Sampling,),
        ),
        ("neighbours.patterns", dp.neighbours.patterns, {"length": 3}, (list,)),
        ("neighbours.remove_one", dp.neighbours.remove_one, {"database": [1, 2]}, (list,)),
        (
            "neighbours.edit_one",
            dp.neighbours.edit_one,
            {"database": [1, 2], "values": [3]},
            (list,),
        ),
        (
            "Population",
            Population,
            {"draw": lambda rows, rng: rng.normal(size=rows), "rows": 5},
            (Population,),
        ),
        ("claim", dp.claim, {"given": "eps=1"}, (dp.Claim,)),
        ("PureDP", dp.PureDP, {"epsilon": 1.0}, (dp.Claim,)),
        (
            "ApproximateDP",
            dp.ApproximateDP,
            {"epsilon": 1.0, "delta": 0.1, "headline": "delta"},
            (dp.Claim,),
        ),
        ("GaussianDP", dp.GaussianDP, {"mu": 1.0}, (dp.Claim,)),
        ("RenyiDP", dp.RenyiDP, {"order": 2.0, "epsilon": 1.0}, (dp.Claim,)),
        (
            "RenyiCurveDP",
            dp.RenyiCurveDP,
            {"orders": (2, 3), "epsilons": (0.1, 0.2), "factor": 1.0},
            (dp.Claim,),
        ),
        ("ZeroConcentratedDP", dp.ZeroConcentratedDP, {"rho": 1.0, "delta": 0.1}, (dp.Claim,)),
        (
            "TradeoffDP",
            dp.TradeoffDP,
            {"f": [(0, 1), (0.2, 0.2), (1, 0)], "gap": 0.1, "ordered": False},
            (dp.Claim,),
        ),
        (
            "TradeoffDP.from_delta",
            dp.TradeoffDP.from_delta,
            {"f": lambda e: np.exp(-np.asarray(e))},
            (dp.Claim,),
        ),
        (
            "Spectrum",
            dp.Spectrum,
            {"x": [0, 1], "y": [0.5, 0.1], "lower": [0.4, 0.0]},
            (dp.Spectrum,),
        ),
        ("TradeoffCurve", dp.TradeoffCurve, {"x": [0, 1], "y": [0.5, 0.1]}, (dp.TradeoffCurve,)),
        ("RenyiCurve", dp.RenyiCurve, {"x": [2, 3], "y": [0.5, 0.6]}, (dp.RenyiCurve,)),
        (
            "LossCurve",
            dp.LossCurve,
            {"x": [0, 1], "y": [0.1, 0.2], "p": [0.5, 0.5], "q": [0.4, 0.6]},
            (dp.LossCurve,),
        ),
        ("Masses", dp.Masses, {"p": [0.5, 0.5], "q": [0.4, 0.6], "tolerance": 1e-6}, (dp.Masses,)),
        ("Spectrum()", lambda **k: spectrum(**k), {"epsilon": 0.5}, number),
        ("Spectrum.epsilon", spectrum.epsilon, {"delta": 0.1}, number),
        (
            "Spectrum.certified",
            dp.Spectrum([0, 1], [0.5, 0.1], [0.4, 0.0]).certified,
            {"epsilon": 0.1},
            number,
        ),
        ("TradeoffCurve()", lambda **k: curve(**k), {"alpha": 0.5}, number),
        ("TradeoffCurve.delta", curve.delta, {"epsilon": 0.5}, number),
        ("TradeoffCurve.spectrum", curve.spectrum, {"epsilons": [0.0, 0.5]}, (dp.Spectrum,)),
        ("RenyiCurve()", lambda **k: renyi(**k), {"order": 2.5}, number),
        ("RenyiCurve.approximate_dp", renyi.approximate_dp, {"delta": 0.1}, number),
        ("LossCurve()", lambda **k: loss(**k), {"t": 0.5}, number),
        ("inputs.Real", space.Real, {"low": 0, "high": 1}, kinds),
        ("inputs.Integer", space.Integer, {"low": 0, "high": 1}, kinds),
        ("inputs.Category", space.Category, {"values": ["a", "b"]}, kinds),
        ("inputs.Text", space.Text, {"longest": 4, "alphabet": "ab"}, kinds),
        (
            "inputs.Reals",
            space.Reals,
            {"low": 0, "high": 1, "length": (0, 3), "convert": "numpy"},
            kinds,
        ),
        (
            "inputs.Integers",
            space.Integers,
            {"low": 0, "high": 9, "length": (0, 3), "convert": "list"},
            kinds,
        ),
        (
            "inputs.Strings",
            space.Strings,
            {"longest": 4, "alphabet": "ab", "length": 3, "convert": "list"},
            kinds,
        ),
        (
            "inputs.Table",
            space.Table,
            {"columns": {"a": space.Real(0, 1)}, "rows": (0, 4), "convert": "list"},
            kinds,
        ),
        (
            "inputs.Counts",
            space.Counts,
            {"keys": ["a", "b"], "most": 4, "keys_at_once": (0, 2), "zeros": False},
            kinds,
        ),
        ("inputs.Example", space.Example, {"data": [1, 2, 3], "columns": None}, kinds),
        (
            "inputs.as_space",
            space.as_space,
            {"given": {"type": "Reals", "low": 0, "high": 1}},
            kinds,
        ),
    ]
    for claim in claims:
        found += [
            (f"{claim}.region", claim.region, {"q": 0.2}, number),
            (f"{claim}.delta_at", claim.delta_at, {"epsilon": 0.2}, number),
            (f"{claim}.renyi", claim.renyi, {"order": 2.0}, number),
            (f"{claim}.tradeoff", claim.tradeoff, {"alpha": 0.2}, number),
        ]
    return tuple(found)


def case(seed: int) -> Case:
    """A call with one argument or two replaced."""
    rng = np.random.default_rng([seed, 4])
    name, function, arguments, results = calls()[seed % len(calls())]
    given = dict(arguments)
    replaced = {}
    for key in rng.permutation(list(given))[: int(rng.integers(1, 3))]:
        index = int(rng.integers(len(OBJECTS)))
        given[key] = OBJECTS[index]()
        replaced[str(key)] = index
    return Case(f"{name} with {replaced}", lambda: function(**given), results)
