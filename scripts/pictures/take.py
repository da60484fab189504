# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pictures of parts of a report, by a headless Chromium.

usage: take.py REPORT FOLDER
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright import sync_api as playwright

#: What is in each picture: from the top of a section to the end of its first chart, or of another of its elements.
PARTS = {"answer": ("section#answer", ".chart"), "curves": ("section#curves", ".chart")}
#: Bytes: the pictures are part of the repository and of the collection.
LARGEST = 60_000
#: Pixels of the CSS: of the page, in which a table of results is legible without scrolling, and around what is in a picture.
WIDTH, MARGIN = 900, 12


def main() -> int:
    """Take all of them."""
    report, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as running:
        # The sandbox of Chromium refuses to run as root; the page is ours.
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1200})
        page.goto(report.as_uri())
        for name, (selector, last) in PARTS.items():
            part = page.locator(selector)
            end = part.locator(last).first
            end.scroll_into_view_if_needed()
            # Charts are drawn when they are scrolled into view.
            page.wait_for_timeout(1500)
            path = folder / f"report_{name}.png"
            top, bottom = part.bounding_box(), end.bounding_box()
            height = bottom["y"] + bottom["height"] - top["y"]
            clip = {"x": top["x"] - MARGIN, "y": top["y"] + page.evaluate("scrollY"), "width": top["width"] + 2 * MARGIN, "height": height}
            page.screenshot(path=path, full_page=True, clip=clip)
            print(f"{path}: {path.stat().st_size} bytes")
            if path.stat().st_size > LARGEST:
                print(f"{path} is larger than {LARGEST} bytes.", file=sys.stderr)
                return 1
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
