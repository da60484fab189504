# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of what outlives a reboot of a host."""

from __future__ import annotations

from pathlib import Path

FOLDER = "var/lib/cachefleet"


def place_of(name: str, root: Path = Path("/")) -> Path:
    """The path of a file in it."""
    return root / FOLDER / name
