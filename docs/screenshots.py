"""Regenerate the screenshots of the report in docs/images. Needs Chromium and playwright."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import dpassay as dp
from dpassay import report

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VIEWS = {
    "report-light": ({"width": 1000, "height": 1500}, "light"),
    "report-dark": ({"width": 1000, "height": 1500}, "dark"),
    "report-phone": ({"width": 390, "height": 1700}, "light"),
}


def example() -> tuple[dp.Verdict, dp.Profile]:
    """A Laplace mechanism whose scale is half of what its claim of 1-DP needs."""
    mechanism, pair, claim = dp.zoo.Laplace(scale=0.5), (0.0, 1.0), dp.PureDP(1.0)
    curve = dp.tradeoff.estimate(mechanism, pair, n=100_000, confidence=None, rng=1).symmetrise()
    found = dp.pure.estimate(mechanism, pair, n=100_000, rng=2)
    profile = dp.Profile(
        epsilon=found.value,
        mu=curve.mu(),
        spectrum=dp.spectrum.estimate(
            mechanism, pair, epsilons=np.linspace(0, 2.5, 51), n=100_000, rng=3
        ),
        renyi_curve=dp.renyi.curve(mechanism, pair, orders=[1.5, 2, 3, 4, 6, 8], n=50_000, rng=4),
        tradeoff_curve=curve,
        loss=found.loss,
        pair=found.pair,
        about=found.about,
    )
    verdict = dp.tradeoff.audit(mechanism, pair, claim, n_locate=10_000, n_test=10_000, rng=0)
    return verdict, profile


def main() -> int:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no Chromium found; on Debian: apt-get install chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    verdict, profile = example()
    command = 'dpassay audit "zoo:Laplace(scale=0.5)" --pair 0 1 --claim "eps=1" --seed 0'
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_file = Path(folder) / "report.html"
        report.write(page_file, [verdict], profile=profile, command=command)
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name, (viewport, scheme) in VIEWS.items():
            page = chromium.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(page_file.as_uri())
            page.wait_for_selector(".chart.ready")
            page.wait_for_timeout(1000)
            page.screenshot(path=IMAGES / f"{name}.png")
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
