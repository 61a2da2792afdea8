"""The system's Chromium, driven by Playwright; tests that need it are skipped, with the reason, where it is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def started() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is missing: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


class Visit:
    """A page that notes errors and every request; ``close`` asserts that there were no errors and none left the page's
    folder."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.folder = file.parent
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.set_default_timeout(15_000)

    def open(self, file: Path, hash: str = "") -> Any:
        self.page.goto(file.as_uri() + hash)
        return self.page

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
        assert all(url.startswith(self.folder.as_uri() + "/") for url in self.requests), self.requests
