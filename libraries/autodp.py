"""autodp: the ε that its accountants give for compositions, and for the sparse vector technique."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from autodp import mechanism_zoo, transformer_zoo
from scipy.optimize import brentq

from dpassay.blackbox.inputs import Reals
from libraries import dominating
from libraries.cases import Case, Finding, hunted
from libraries.dominating import Part

DISTRIBUTION = "autodp"
warnings.filterwarnings("ignore")
_SAID = "Mechanism.get_eps, the smallest eps that it knows for delta (autodp_core.py)"
_SAID_FOURIER = "ComposeAFA: The analytical Fourier Accountant (AFA) (transformer_zoo.py)"
_SAID_SVT = (
    "LaplaceSVT_Mechanism: b: the noise scale to perturb the threshold and the query "
    "(mechanism_zoo.py)"
)
_RNG = np.random.default_rng()


def _mechanism(part: Part, **options: Any) -> Any:
    kinds = {
        "Gaussian": mechanism_zoo.GaussianMechanism,
        "Laplace": mechanism_zoo.LaplaceMechanism,
        "response": mechanism_zoo.RandresponseMechanism,
    }
    made = kinds[part.kind](part.scale, **options)
    if part.rate < 1:
        made = transformer_zoo.AmplificationBySampling()(made, part.rate, improved_bound_flag=True)
    return made


def _composed(composer: Any, parts: Sequence[Part], **options: Any) -> Any:
    made = [_mechanism(part, **options) for part in parts]
    return composer(made, [part.times for part in parts])


def _epsilon(composer: Any, **options: Any) -> Callable[[Sequence[Part], float], float]:
    def epsilon(parts: Sequence[Part], delta: float) -> float:
        with contextlib.redirect_stdout(io.StringIO()):
            return float(_composed(composer, parts, **options).get_eps(delta))

    return epsilon


def _inverted(parts: Sequence[Part], delta: float) -> float:
    """The ε at which its δ is the given one."""
    made = _composed(transformer_zoo.ComposeAFA(), parts, phi_off=False)
    return float(brentq(lambda eps: made.get_approx_delta(eps) - delta, 1e-6, 12.0))


def cases() -> Iterator[Case]:
    """All cases."""
    gaussians, pure = dominating.gaussians(), dominating.pure()
    every = [*gaussians, *pure, *dominating.sampled(), *dominating.mixed()]
    place = "autodp.transformer_zoo"
    yield from dominating.cases(
        "Composition", f"{place}.Composition", every, _epsilon(transformer_zoo.Composition()), _SAID
    )
    yield from dominating.cases(
        "ComposeGaussian",
        f"{place}.ComposeGaussian",
        gaussians,
        _epsilon(transformer_zoo.ComposeGaussian()),
        _SAID,
    )
    fourier = _epsilon(transformer_zoo.ComposeAFA(), phi_off=False)
    plain: dict[str, Any] = {"deltas": (1e-2,), "sound": ""}
    yield from dominating.cases(
        "AFA", f"{place}.ComposeAFA", [*gaussians, *pure], fourier, _SAID_FOURIER, **plain
    )
    yield from dominating.cases(
        "AFA by its δ", f"{place}.ComposeAFA", gaussians, _inverted, _SAID_FOURIER, **plain
    )
    yield from _sparse_vector()


def _sparse_vector() -> Iterator[Case]:
    """The index of the first of five answers above 0, with noise on 0 and on the answers."""
    delta, count = 1e-3, 5
    both_ways = np.array([1.0] * (count - 1) + [0.0]), np.array([0.0] * (count - 1) + [1.0])
    one_way = np.zeros(count), np.ones(count)
    shown = {"both ways": "(1, 1, 1, 1, 0) and (0, 0, 0, 0, 1)", "one way": "zeros and ones"}
    for scale in (1.0, 2.0):
        params = {"b": scale, "k": count, "c": 1}
        eps = float(mechanism_zoo.LaplaceSVT_Mechanism(params).get_eps(delta))
        for factor, way, pair in (
            (1, "both ways", both_ways),
            (1, "one way", one_way),
            (2, "both ways", both_ways),
        ):
            noise = "b" if factor == 1 else "2b"
            case = Case(
                f"Laplace SVT, b = {scale:g}, noise {noise} on answers that move {way}",
                "autodp.mechanism_zoo.LaplaceSVT_Mechanism",
                _first_above(scale, factor * scale),
                pair,
                f"eps={eps!r}, delta={delta!r}",
                f"{_SAID_SVT}: ε = {eps:.4g} at δ = {delta:g}",
                "query",
                n=20_000,
                group="accountant",
                vectorised=True,
                shown=shown[way],
                sound=""
                if factor == 1 and pair is both_ways
                else "the proof of Lyu, Su and Li (2017)",
            )
            yield case
            if factor == 1 and pair is both_ways:
                yield hunted(case, Reals(-2, 2, length=count), n=200_000)


def _first_above(threshold: float, answer: float) -> Callable[[Any, int], Any]:
    def index(answers: Any, size: int) -> Any:
        noisy = answers + _RNG.laplace(scale=answer, size=(size, len(answers)))
        above = noisy >= _RNG.laplace(scale=threshold, size=(size, 1))
        return np.where(above.any(axis=1), above.argmax(axis=1), len(answers))

    return index


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="The Fourier accountant gives an ε of 0 or less with SciPy 1.10 and later",
        kind="violation",
        cases=("AFA, *",),
        cause=(
            "converter.cdf_to_approxdp calls numerical_inverse(…, bounds=[0, 1]), whose bounds are "
            "those of 1 − δ, and which gives them to minimize_scalar as bounds of eᵋ. SciPy up to 1.9 "
            "ignored bounds unless method='bounded' was given; later versions keep them, so that eᵋ ≤ "
            "1 whatever is composed. get_eps takes the least of its bounds, which is then this one. "
            "get_approx_delta is not affected. setup.py asks for scipy>=1.2.1."
        ),
        script="autodp_fourier.py",
        report=(
            "With SciPy 1.17, ComposeAFA()([GaussianMechanism(2, phi_off=False)], [4]).get_eps(1e-3) "
            "is −0.005; with SciPy 1.9 it is 3.14. numerical_inverse passes bounds=[0, 1], meant for "
            "y, to minimize_scalar, which since 1.10 chooses method='bounded' if bounds are given; x = "
            "eᵋ is then at most 1. An audit of draws from the dominating pair refutes the claim for "
            "every composition, such as {AFA, Gaussian 2 × 4, δ = 0.01} (10⁻³ error probability). A "
            "remedy is method='brent' (and no bounds), or a root search with a bracket, and an error "
            "for ε < 0."
        ),
    ),
    Finding(
        title="The sparse vector technique is charged as if all answers moved one way",
        kind="violation",
        cases=("Laplace SVT, b = *, noise b on answers that move both ways*",),
        cause=(
            "RDP_svt_laplace charges 1/b for the threshold and c/b for the answers. If one record may "
            "raise some answers and lower others, an answer and the threshold that it is compared with "
            "move by 2, and the cost of the answers is 2c/b (Lyu, Su and Li 2017, theorem 4): 3/b in "
            "place of 2/b for c = 1. By integration over the noise of the threshold, the index 4 of "
            "five answers (1, 1, 1, 1, 0) against (0, 0, 0, 0, 1) has a log ratio of 2.73 for b = 1. "
            "For answers that all move one way, and for noise 2b on the answers, the claim holds."
        ),
        script="autodp_sparse_vector.py",
        report=(
            "LaplaceSVT_Mechanism documents b as the noise scale of the threshold and of the query, "
            "and RDP_svt_laplace returns (c + 1)/b at α = ∞. That holds for monotonic queries; for "
            "general ones of sensitivity 1 it is (2c + 1)/b. With b = 1, k = 5, c = 1 (claimed 2.0 at "
            "δ = 10⁻³) an audit certifies {Laplace SVT, b = 1, noise b on answers that move both ways} "
            "(10⁻³ error probability); the exact value of that event is 2.73. A remedy is eps_2 = 2 / "
            "b unless the queries are declared to be monotonic, or to document that the queries get "
            "noise 2b."
        ),
    ),
)
