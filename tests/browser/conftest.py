"""A real browser: Chromium as the system provides it."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.fail("these tests need Chromium; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
