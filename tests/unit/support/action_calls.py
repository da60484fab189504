# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins as the task of a playbook, without the rest of Ansible."""

from __future__ import annotations

import types
import typing as t


def made_action(
    module: t.Any, args: dict[str, t.Any], printed: list[str], *, check_mode: bool = False, columns: int | None = None, **attributes: t.Any
) -> t.Any:
    """The action plugin of a file of ``plugins/action`` for one task; ``printed`` takes what it prints, on a terminal with so many columns."""
    action = object.__new__(module.ActionModule)
    display = types.SimpleNamespace(display=printed.append, warning=printed.append)
    if columns is not None:
        display.columns = columns
    absent = dict.fromkeys(("_play_context", "_loader", "_templar"))
    vars(action).update(absent, _display=display, _cleanup_remote_tmp=False)
    action._task = types.SimpleNamespace(args=args, check_mode=check_mode, async_val=0, diff=False)
    action._connection = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=None), become=None)
    vars(action).update(attributes)
    return action
