# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The width of the terminal, for action plugins."""

from __future__ import annotations

import sys
import typing as t

#: Determined when an action plugin is loaded, which the main process does: workers of newer ansible-core have no terminal.
IS_TERMINAL = sys.stdout.isatty()


def width_of(display: t.Any, otherwise: int) -> int:
    """Columns of the terminal.

    :param otherwise: if the output is a file or a pipe.
    """
    return display.columns if IS_TERMINAL else otherwise
