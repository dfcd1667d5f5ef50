"""Regenerate the charts of the documentation.

bits.png: which lowest set bits x + Laplace noise has on two inputs. feature.png: the feature that the
audit of docs/synthetic-data.md finds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

import dpassay as dp
from dpassay.charts import PALETTE, masses
from dpassay.outputs.representations import powers

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


def feature() -> Any:
    """How often the feature takes each value on the two inputs, in the first example of the page."""
    page = Path(__file__).parent / "synthetic-data.md"
    code = re.search(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert code is not None
    names: dict[str, Any] = {}
    exec(compile(code[1].partition("verdict =")[0], page.name, "exec"), names)
    verdict = dp.audit(
        names["mechanism"],
        (names["people"], names["one_more"]),
        "eps=1",
        n=400,
        rng=0,
        details=True,
    )
    assert verdict.profile is not None
    loss, event = verdict.profile.loss, verdict.witness.event
    assert loss is not None
    assert loss.labels is not None
    inside = event.holds_feature(loss.x)
    assert inside is not None
    chart = masses(loss.labels, loss.p, loss.q, inside=inside.tolist())
    return chart.properties(title=loss.part, background="white")


if __name__ == "__main__":
    feature().save(IMAGES / "feature.png", scale_factor=2)
    bits().save(IMAGES / "bits.png", scale_factor=2)
