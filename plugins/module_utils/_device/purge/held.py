# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that write to a device which this process holds exclusively: their own check would find this process.

Sources: blkdiscard(8): util-linux 2.36 and newer open the device exclusively without ``--force``, older ones do not know the option;
nvme-format(1).
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner


def discard(runner: Runner, path: str, *, timeout: float) -> None:
    """Discard a whole device.

    :param timeout: in seconds.
    :raises CommandFailed: if it was not discarded.
    """
    completed = run_forced(runner, ["blkdiscard", path], path, timeout=timeout)
    if completed.rc:
        raise CommandFailed(f"{path} was not discarded: {completed.last_words}", item=path, completed=completed)


def run_forced(runner: Runner, argv: list[str], path: str, *, timeout: float) -> Completed:
    """With ``--force``, as this process holds the device exclusively; without it if the version of the tool does not have the option."""
    completed = runner.run([*argv, "--force"], ok=None, timeout=timeout, item=path)
    printed = f"{completed.stdout}{completed.stderr}"
    if completed.rc and "option" in printed and "force" in printed:
        return runner.run(argv, ok=None, timeout=timeout, item=path)
    return completed
