"""Regenerate the screenshots of the report in docs/images. Needs Chromium and playwright."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import dpassay as dp
from dpassay import report

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VIEWS = {
    "report-light": ({"width": 880, "height": 1160}, "light"),
    "report-dark": ({"width": 880, "height": 1160}, "dark"),
    "report-phone": ({"width": 390, "height": 1700}, "light"),
}


def release(x: float, size: int, rng: np.random.Generator) -> Any:
    """The example of the landing page: Laplace noise of scale 0.7 where 1-DP needs 1."""
    return x + rng.laplace(scale=0.7, size=size)


def main() -> int:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no Chromium found; on Debian: apt-get install chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    verdict = dp.audit(release, (0.0, 1.0), "eps=1", n=20_000, rng=0, loss="values", details=True)
    command = 'dpassay audit mine.py:release --pair 0 1 --claim "eps=1" --loss values'
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_file = Path(folder) / "report.html"
        report.write(page_file, [verdict], command=command)
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
