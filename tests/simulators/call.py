# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of a simulated tool: ``python3 -S call.py MODULE:CLASS WORD...``

Modules send many of them to emulated machines, so nothing is loaded here but the tool that was called.
"""

from __future__ import annotations

import importlib
import os
import sys

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    place, _colon, name = sys.argv[1].partition(":")
    simulator = importlib.import_module("simulators.simulator")
    sys.exit(simulator.run(getattr(importlib.import_module(f"simulators.{place}"), name), sys.argv[2:]))
