# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign of one host, and what can be seen of its folder."""

from __future__ import annotations

import datetime

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.archive import receive

NOW = datetime.datetime(2026, 11, 21, 14, 3, 55, tzinfo=datetime.timezone.utc)
KEY = CellKey("before", "randwrite-4k", 1)


def take_in(archive, campaign, **options):
    return receive(archive, campaign, "node1", store.expected_cells(campaign, "node1"), **options)


def leftovers(campaign):
    return [path.name for path in campaign.iterdir() if path.name.startswith(".")]


def everything(campaign):
    return sorted(str(path.relative_to(campaign)) for path in campaign.rglob("*") if path.is_file())
