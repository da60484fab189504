# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hint about drives whose vendor documents power-loss protection."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import documented_drives
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement


@pytest.mark.parametrize(
    ("model", "unflushed", "hinted"), [("INTEL SSDSC2BB080G4", "may_be_lost", True), ("INTEL SSDSC2BB080G4", "kept", False), ("SSD A", "may_be_lost", False)]
)
def test_a_documented_model_is_named_where_its_cache_decides(model, unflushed, hinted):
    rows = Rows(
        "c", [measurement(model=f"{model}, SSD A", stack_before="s", stack_after="s")], settings={("node1", "s"): [("sda", "verdict", "unflushed", unflushed)]}
    )
    found = list(documented_drives(rows))
    assert [name for name, _sentence in found] == ([model] if hinted else [])
    assert all("storage_protected_drives" in sentence and "no proof" in sentence for _name, sentence in found)
