# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the test equipment is where its programs look for each other."""

from __future__ import annotations

import sys
from pathlib import Path

RACK = str(Path(__file__).resolve().parents[2] / "rack")
if RACK not in sys.path:
    sys.path.insert(0, RACK)
