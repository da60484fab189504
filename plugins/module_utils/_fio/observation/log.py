# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""``runner.log``: what a runner did and when, never more than a few hundred kilobytes."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import append_line

if t.TYPE_CHECKING:
    from pathlib import Path

_MOST = 256 * 1024


class RunnerLog:
    """Lines with their time. A full disk is no reason to stop a measurement."""

    def __init__(self, home: Path) -> None:
        self.path = home / "runner.log"

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            if self.path.exists() and self.path.stat().st_size > _MOST:
                self.path.replace(self.path.with_name("runner.log.1"))
            append_line(self.path, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}")
