"""Rényi curves: ε(λ) between its orders, and the (ε, δ) that it implies.

The privacy loss along the outputs, with the two densities it is the log-ratio of.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import axis, estimated_by
from dpassay.privacy.provenance import About, level
from dpassay.tables import Shown, Tabular, present


@dataclass(frozen=True, eq=False)
class RenyiCurve(Shown, Tabular):
    """ε(λ), the Rényi divergence as a function of its order.

    (λ − 1)·ε(λ) is convex in λ; between grid points that product is interpolated linearly: never
    below the truth when the grid values are not.
    """

    x: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    lower: FloatArray | None = field(default=None, repr=False)
    confidence: float | None = None
    simultaneous: bool | None = None
    about: About | None = None
    drawn_as: ClassVar[str] = "renyi"

    def columns(self) -> dict[str, Any]:
        """order and epsilon, and the lower bound where there is one."""
        return present(order=self.x, epsilon=self.y, lower=self.lower)

    def __post_init__(self) -> None:
        self._set(x=axis("order", self.x))
        self._set(y=axis("epsilon", self.y, increasing=False))
        if self.x[0] <= 1 or self.x.shape != self.y.shape:
            raise InvalidInput("a Rényi curve needs orders above 1 and equally many values")
        if self.lower is not None:
            self._set(lower=axis("lower", self.lower, increasing=False, like=self.x))

    def __call__(self, order: npt.ArrayLike) -> Any:
        """ε(λ) inside the grid, interpolated on the safe (upper) side."""
        lam = checks.doubles("order", order)
        if np.any(lam < self.x[0]) or np.any(lam > self.x[-1]):
            raise InvalidInput(
                f"order must lie in [{self.x[0]:g}, {self.x[-1]:g}], the orders of this curve, got "
                f"{checks.shown(order)}; dp.renyi.curve(…, orders=[…]) estimates others"
            )
        value = np.interp(lam, self.x, (self.x - 1) * self.y) / (lam - 1)
        return value if lam.ndim else float(value)

    def approximate_dp(self, delta: float) -> float:
        """The ε for which this curve implies (ε, δ)-DP.

        A bound from above if the curve is one (Canonne, Kamath & Steinke 2020, Prop. 12). A lower
        bound on the Rényi curve gives nothing here: small Rényi divergence implies (ε, δ), large
        Rényi divergence does not refute it.
        """
        checks.probability("delta", delta)
        lam = self.x
        eps = self.y + np.log1p(-1 / lam) - (math.log(delta) + np.log(lam)) / (lam - 1)
        return max(0.0, float(np.min(eps)))

    def chart(self, **others: Any) -> Any:
        """An Altair chart of ε(λ), with the lower bounds, and other curves given by name."""
        from dpassay import charts

        lines = {"estimate": (self.x, self.y)}
        if self.lower is not None:
            lines["lower bound"] = (self.x, self.lower)
        for name, other in others.items():
            lines[name] = (self.x, np.asarray(other(self.x)))
        return charts.renyi(lines)

    def __str__(self) -> str:
        said = (
            f"Rényi curve on orders [{self.x[0]:g}, {self.x[-1]:g}]: "
            f"ε({self.x[0]:g}) = {self.y[0]:.4g}, ε({self.x[-1]:g}) = {self.y[-1]:.4g}"
        )
        if self.lower is not None and self.confidence is not None:
            scope = "at all orders at once" if self.simultaneous else "at each order on its own"
            backing = "" if self.about is None else f" ({self.about.guarantee})"
            said += (
                f"; at least {self.lower[0]:.4g} and {self.lower[-1]:.4g} with confidence "
                f"{level(self.confidence)} {scope}{backing}"
            )
        return said + estimated_by(self.about)


# --- the privacy loss along the outputs, with the two densities it is the log-ratio of


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
        self._set(x=axis("x", self.x))
        for name in ("y", "p", "q"):
            values = axis(name, getattr(self, name), increasing=False, like=self.x)
            self._set(**{name: values})
        if self.labels is not None:
            self._set(labels=tuple(self.labels))
            checks.require(len(self.labels) == self.x.size, "labels must name every output")

    def __call__(self, t: npt.ArrayLike) -> Any:
        """ℓ(t) for a continuous output, linear between grid points."""
        if self.labels is not None:
            raise InvalidInput("the outputs are discrete: look them up in `.labels` and `.y`")
        t = checks.doubles("t", t)
        value = np.interp(t, self.x, self.y)
        return value if t.ndim else float(value)

    def chart(self, location: float | None = None) -> Any:
        """Densities above, loss below, as in the figures of the local approach."""
        from dpassay import charts

        return charts.loss(
            self.x,
            self.p,
            self.q,
            self.y,
            labels=self.labels,
            location=location,
            part=self.part,
        )

    def __str__(self) -> str:
        return f"privacy loss along {self.x.size} outputs"
