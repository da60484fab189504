# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes of a suite and targets what one host measures, in steps."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import host_plan


def fio_plan(
    targets: t.Any,
    suite: t.Any,
    suites: t.Any,
    runtime: int = 0,
    repeats: int = 0,
    synchronise: bool = True,
    gap: float = 2.0,
    wear_budget: float = 0.0,
    only: t.Any = (),
    host: str = "",
    dry_run: bool = False,
    group: str = "",
    repeat: int = 0,
) -> dict[str, t.Any]:
    """See ``fio_plan.yml``."""
    if isinstance(targets, (str, bytes)) or not isinstance(targets, t.Sequence):
        raise AnsibleFilterError("fio_plan: the targets must be a list of dictionaries.")
    if not isinstance(suites, t.Mapping):
        raise AnsibleFilterError("fio_plan: the suites must be a dictionary of suites by name.")
    if isinstance(only, (str, bytes)) or not isinstance(only, t.Sequence):
        raise AnsibleFilterError("fio_plan: 'only' must be a list of patterns.")
    try:
        numbers: dict[str, t.Any] = {"runtime": int(runtime), "repeats": int(repeats), "repeat": int(repeat), "gap": float(gap)}
        budget = float(wear_budget)
        # What comes from the command line is text, and the text false is not false.
        together, is_dry_run = boolean(synchronise), boolean(dry_run)
    except (TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"fio_plan: runtime, repeats and repeat must be whole numbers, gap and wear_budget numbers, synchronise and dry_run true or false ({error})."
        ) from error
    try:
        return host_plan(
            targets,
            str(suite),
            suites,
            synchronise=together,
            only=only,
            group=str(group or ""),
            host=str(host),
            dry_run=is_dry_run,
            wear_budget=budget,
            **numbers,
        )
    except StorageError as error:
        raise AnsibleFilterError(error.message) from error


class FilterModule:
    """Filters of this collection."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"fio_plan": fio_plan}
