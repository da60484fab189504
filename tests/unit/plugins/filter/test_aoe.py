# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of ATA over Ethernet, as a playbook uses them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.filter.aoe import FilterModule

FILTERS = FilterModule().filters()


@pytest.mark.parametrize(("mtu", "carried"), [(1500, 1024), (4200, 4096), ("8700", 8192), (9000, 8704)])
def test_payload_of_common_mtus(mtu, carried):
    assert FILTERS["aoe_payload"](mtu) == carried


@pytest.mark.parametrize(("arguments", "mtu"), [((9000,), 8700), (("9000", "4k"), 8700), ((9000, 8192), 8700), ((4300, 4096), 4300), ((1500, 512), 1500)])
def test_best_mtu(arguments, mtu):
    assert FILTERS["aoe_best_mtu"](*arguments) == mtu


@pytest.mark.parametrize("value", [None, True, "jumbo", 8700.5, -1, 67, 65536, [], ""])
@pytest.mark.parametrize("name", sorted(FILTERS))
def test_invalid_mtu_is_rejected(name, value):
    with pytest.raises(AnsibleFilterError, match=f"{name}: the MTU must be between"):
        FILTERS[name](value)


@pytest.mark.parametrize(("block", "says"), [("x", "not a size"), (100, "not a multiple of a sector"), ("64k", "No MTU up to 9000")])
def test_unsupported_block_size_is_rejected(block, says):
    with pytest.raises(AnsibleFilterError, match=says):
        FILTERS["aoe_best_mtu"](9000, block)
