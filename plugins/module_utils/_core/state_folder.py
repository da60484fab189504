# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of what outlives a reboot of a host."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

from pathlib import Path

FOLDER = "var/lib/cachefleet"


def place_of(name: str, root: Path = Path("/")) -> Path:
    """The path of a file in it."""
    return root / FOLDER / name
