# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that turns a suite and targets into the cells of one host."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.suites import expand


def fio_cells(
    targets: t.Any,
    suite: t.Any,
    suites: t.Any,
    runtime: int = 0,
    repeats: int = 0,
) -> dict[str, t.Any]:
    """See ``fio_cells.yml``."""
    if isinstance(targets, (str, bytes)) or not isinstance(targets, t.Sequence):
        raise AnsibleFilterError("fio_cells: the targets must be a list of dictionaries.")
    if not isinstance(suites, t.Mapping):
        raise AnsibleFilterError("fio_cells: the suites must be a dictionary of suites by name.")
    try:
        expansion = expand(str(suite), suites, targets, runtime=int(runtime), repeats=int(repeats))
    except BadInput as error:
        raise AnsibleFilterError(error.message) from error
    except (TypeError, ValueError) as error:
        raise AnsibleFilterError(f"fio_cells: runtime and repeats must be whole numbers ({error}).") from error
    return {"cells": expansion.cells, "seconds": expansion.seconds, "limit": expansion.limit}


class FilterModule:
    """Filters of this collection."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"fio_cells": fio_cells}
