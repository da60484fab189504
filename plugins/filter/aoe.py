# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that compute what an MTU means for ATA over Ethernet."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import BLOCK, JUMBO, best_mtu, payload

#: What the Ethernet of Linux takes as an MTU (``ETH_MIN_MTU`` and ``ETH_MAX_MTU`` of include/uapi/linux/if_ether.h).
_LOWEST = 68
_HIGHEST = 65535


def aoe_payload(mtu: t.Any) -> int:
    """See ``aoe_payload.yml``."""
    return payload(_mtu(mtu, "aoe_payload"))


def aoe_best_mtu(limit: t.Any = JUMBO, block_size: t.Any = BLOCK) -> int:
    """See ``aoe_best_mtu.yml``."""
    try:
        return best_mtu(_mtu(limit, "aoe_best_mtu"), parse_size(block_size))
    except BadInput as error:
        raise AnsibleFilterError(f"aoe_best_mtu: {error.message}") from error


def _mtu(value: t.Any, name: str) -> int:
    # A truth value is an int to Python.
    if isinstance(value, bool) or not str(value).strip().isdigit() or not _LOWEST <= int(value) <= _HIGHEST:
        raise AnsibleFilterError(f"{name}: the MTU must be between {_LOWEST} and {_HIGHEST}, not {value}.")
    return int(value)


class FilterModule:
    """Filters of this collection."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"aoe_best_mtu": aoe_best_mtu, "aoe_payload": aoe_payload}
