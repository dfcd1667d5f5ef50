"""The privacy loss along the outputs, with the two densities it is the log-ratio of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.about import About
from dpassay.privacy.curve_points import axis
from dpassay.tables import Shown, Tabular


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
            self._set(**{name: axis(name, getattr(self, name), increasing=False)})
        if self.labels is not None:
            self._set(labels=tuple(self.labels))

    def __call__(self, t: npt.ArrayLike) -> Any:
        """ℓ(t) for a continuous output, linear between grid points."""
        if self.labels is not None:
            raise InvalidInput("the outputs are discrete: look them up in `.labels` and `.y`")
        t = np.asarray(t, dtype=float)
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
