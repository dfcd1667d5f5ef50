"""Regenerate docs/images/bits.png: which lowest set bits x + Laplace noise has on two inputs."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import numpy as np

import dpassay as dp
from dpassay.charts import PALETTE
from dpassay.outputs.bits import powers

IMAGES = Path(__file__).parent / "images"
DRAWS, REACH, LOWEST = 4000, 2.0, -66


def rows(data: float, seed: int) -> list[dict[str, object]]:
    """Outputs near 0 and the exponents of their lowest set bits."""
    outputs = dp.zoo.NaiveLaplace()(data, DRAWS, np.random.default_rng(seed))
    outputs = outputs[np.abs(outputs) < REACH]
    low, _ = powers(outputs)
    return [
        {"output": x, "bit": int(k), "input": f"input {data:g}"}
        for x, k in zip(outputs.tolist(), low.tolist(), strict=True)
        if k >= LOWEST
    ]


def bits() -> alt.Chart:
    """Two panels: the fine bits near 0 come out on input 0 only."""
    return (
        alt.Chart(alt.Data(values=rows(0.0, 1) + rows(1.0, 2)))
        .mark_circle(size=9, opacity=0.6)
        .encode(
            x=alt.X("output:Q", scale=alt.Scale(domain=[-REACH, REACH])),
            y=alt.Y("bit:Q", title="lowest set bit: exponent of two", scale=alt.Scale(zero=False)),
            color=alt.Color("input:N", legend=None, scale=alt.Scale(range=list(PALETTE[:2]))),
            column=alt.Column("input:N", title=None, header=alt.Header(labelFontSize=14)),
        )
        .properties(width=330, height=260, background="white")
        .configure_axis(labelFontSize=12, titleFontSize=13, titleFontWeight="normal")
        .configure_view(stroke=None)
    )


if __name__ == "__main__":
    bits().save(IMAGES / "bits.png", scale_factor=2)
