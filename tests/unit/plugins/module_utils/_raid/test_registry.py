# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The code of a RAID tool is imported only where the tool is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS

_IMPORTED = """
import sys
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import layer, registry, spec
class Host(Runner):
    def find(self, name):
        if name in sys.argv[1:]:
            return "/usr/sbin/" + name
        return super().find("/nowhere/" + name)
found = [provider.name for provider in registry.find_tools(Host())]
print(found, sorted({name.split(".")[-2] for name in sys.modules if name.endswith("provider") and "_raid" in name}))
"""


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_each_tool_has_its_own_code(name):
    assert TOOLS[name].provider().name == name


@pytest.mark.parametrize(
    ("tools", "expected"),
    [([], "[] ['controller']"), (["storcli64", "ssacli"], "['storcli', 'ssacli'] ['controller', 'ssacli', 'storcli']")],
)
def test_only_tools_of_the_host_are_imported(tools, expected):
    found = subprocess.run([sys.executable, "-c", _IMPORTED, *tools], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == expected
