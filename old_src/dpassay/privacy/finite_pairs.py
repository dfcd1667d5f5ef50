"""Every notion of privacy of a finite pair of distributions (p_k, q_k), and the privacy loss as a curve.

With ℓ_k = log p_k/q_k, and cells where one of the two is zero kept as what they are (ratio 0 or ∞):

    pure      ε      = max |ℓ_k|
    (ε,δ)     δ(ε)   = Σ p_k (1 − e^{ε−ℓ_k})₊
    Rényi     D_λ    = log Σ p_k^λ q_k^{1−λ} / (λ−1)
    f-DP      T(α)   = the Neyman–Pearson curve: add cells to the rejection region by falling ℓ_k
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curve_arrays import freeze
from dpassay.privacy.curves import TradeoffCurve
from dpassay.privacy.provenance import About
from dpassay.tables import Shown, Tabular

#: Entries of a (grid × cells) table built at a time when δ(ε) is summed.
_CHUNK = 1 << 21


@dataclass(frozen=True, eq=False)
class Masses:
    """A pair of distributions on the same finite set of cells.

    >>> rr = Masses([0.75, 0.25], [0.25, 0.75])
    >>> round(rr.epsilon(), 6), round(float(rr.delta(0.5)), 6)
    (1.098612, 0.33782)
    """

    p: FloatArray = field(repr=False)
    q: FloatArray = field(repr=False)

    def __init__(self, p: npt.ArrayLike, q: npt.ArrayLike, *, tolerance: float = 1e-6) -> None:
        mass_p, mass_q = checks.doubles("p", p), checks.doubles("q", q)
        checks.real("tolerance", tolerance, at_least=0.0)
        if mass_p.shape != mass_q.shape or mass_p.ndim != 1 or mass_p.size == 0:
            raise InvalidInput(
                f"masses must be two equally long lists, got shapes {mass_p.shape}, {mass_q.shape}"
            )
        for name, mass in (("p", mass_p), ("q", mass_q)):
            total = mass.sum()
            if not (np.all(mass >= 0) and abs(total - 1) <= tolerance):
                raise InvalidInput(f"{name} must be non-negative and sum to 1, sums to {total!r}")
        seen = (mass_p > 0) | (mass_q > 0)
        for name, mass in (("p", mass_p), ("q", mass_q)):
            object.__setattr__(self, name, mass[seen] / mass.sum())

    @cached_property
    def loss(self) -> FloatArray:
        """ℓ_k = log p_k/q_k, −∞ and ∞ included."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.p) - np.log(self.q))

    def swap(self) -> Masses:
        """The pair the other way round."""
        return Masses(self.q, self.p)

    def epsilon(self) -> float:
        """The max-divergence in either direction: the smallest ε of pure DP."""
        return float(np.max(np.abs(self.loss)))

    def delta(self, epsilon: npt.ArrayLike) -> Any:
        """The hockey-stick divergence Σ (p − e^ε q)₊; at ε = 0 the total variation.

        Exact for tiny δ: a sum of non-negative terms, nothing cancels.
        """
        eps = checks.doubles("epsilon", epsilon)
        flat = np.atleast_1d(eps).ravel()
        order = np.argsort(-self.loss, kind="stable")
        loss, p = self.loss[order], self.p[order]
        out = np.empty_like(flat)
        step = max(1, _CHUNK // max(loss.size, 1))
        for start in range(0, flat.size, step):
            part = flat[start : start + step]
            above = int(np.searchsorted(-loss, -part.min(), side="left"))
            gain = -np.expm1(np.minimum(part[:, None] - loss[None, :above], 0.0))
            out[start : start + step] = gain @ p[:above]
        return out.reshape(eps.shape) if eps.ndim else float(out[0])

    def renyi(self, order: npt.ArrayLike) -> Any:
        """D_λ(p‖q) for λ > 0; λ = 1 is Kullback–Leibler, λ = ∞ the largest log-ratio."""
        orders = checks.renyi_orders(order)
        out = np.array([self._renyi(float(lam)) for lam in np.atleast_1d(orders).ravel()])
        return out.reshape(orders.shape) if orders.ndim else float(out[0])

    def _renyi(self, lam: float) -> float:
        inside = self.p > 0
        loss, p = self.loss[inside], self.p[inside]
        if lam == np.inf:
            return float(loss.max())
        if lam == 1.0:
            return float(np.sum(p * loss))
        if lam > 1 and np.isinf(loss).any():
            return np.inf
        powers = (lam - 1) * loss
        most = powers.max()
        if most == -np.inf:  # an order below 1, and no output that both sides have
            return np.inf
        # scipy's logsumexp takes six times as long on a thousand cells
        value = float(most + np.log(p @ np.exp(powers - most))) / (lam - 1)
        return max(0.0, value)

    def tradeoff_curve(self) -> TradeoffCurve:
        """The exact Neyman–Pearson curve, α = q(E) against β = 1 − p(E)."""
        order = np.argsort(-self.loss, kind="stable")
        p, q = self.p[order], self.q[order]
        alpha = np.concatenate([[0.0], np.cumsum(q)])
        beta = np.concatenate([np.cumsum(p[::-1])[::-1], [0.0]])
        return TradeoffCurve(np.minimum(alpha, 1.0), np.minimum(beta, 1.0))

    def tradeoff(self, alpha: npt.ArrayLike) -> Any:
        """T(α): the smallest type-II error of a test of q against p with type-I error α."""
        return self.tradeoff_curve()(alpha)


@dataclass(frozen=True, eq=False)
class LossCurve(Shown, Tabular):
    """The privacy loss ℓ(t) = log p(t)/q(t) along the outputs t, with the two densities.

    For a discrete mechanism `x` counts the outputs, `labels` names them, and `p`, `q` are
    probabilities instead of densities.
    """

    x: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    p: FloatArray = field(repr=False)
    q: FloatArray = field(repr=False)
    labels: tuple[str, ...] | None = field(default=None, repr=False)
    about: About | None = None
    #: What of the output `x` is: "output", or "x in (x, •)" where outputs hold more than that.
    part: str = "output"

    def columns(self) -> dict[str, Any]:
        """output, loss, and the densities or probabilities p and q on the two inputs."""
        output = self.x if self.labels is None else list(self.labels)
        return {"output": output, "loss": self.y, "p": self.p, "q": self.q}

    def __post_init__(self) -> None:
        freeze(self, x="x", y="y", p="p", q="q")
        if self.labels is not None:
            self._set(labels=tuple(self.labels))
            checks.require(len(self.labels) == self.x.size, "labels must name every output")

    def __call__(self, t: npt.ArrayLike) -> Any:
        """ℓ(t) for a continuous output, linear between grid points."""
        if self.labels is not None:
            raise InvalidInput("the outputs are discrete: look them up in `.labels` and `.y`")
        return checks.scalar_or_array(np.interp(checks.doubles("t", t), self.x, self.y))

    def chart(self, location: float | None = None) -> Any:
        """Densities above, loss below, as in the figures of the local approach."""
        from dpassay import charts

        densities = self.x, self.p, self.q, self.y
        return charts.loss(*densities, labels=self.labels, location=location, part=self.part)

    def __str__(self) -> str:
        return f"privacy loss along {self.x.size} outputs"
