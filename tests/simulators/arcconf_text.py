# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What GETCONFIG prints: pure functions from the state of one controller to lines of text, one function per section.

A section is a list of lines and ends with the blank lines that stand before the next section.
"""

from __future__ import annotations

from .arcconf_lines import MAIN_RULE, layout_of, section
from .arcconf_text_adapter import adapter, adapter_values, cache_properties, connectors
from .arcconf_text_drives import drive_values, physical
from .arcconf_text_volumes import arrays, logical, maxcache

SUCCESS = "Command completed successfully."

__all__ = [
    "MAIN_RULE",
    "SUCCESS",
    "adapter",
    "adapter_values",
    "arrays",
    "cache_properties",
    "connectors",
    "drive_values",
    "layout_of",
    "logical",
    "maxcache",
    "physical",
    "section",
]
