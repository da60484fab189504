# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths


def test_folder_too_long_for_sockets_is_rejected():
    machine = describe_machines("demo", [{"name": "node1"}])[0]
    RackPaths(pathlib.Path("/" + "x" * 80)).check_sockets(machine)
    with pytest.raises(BadInput, match="choose a shorter directory"):
        RackPaths(pathlib.Path("/" + "x" * 100)).check_sockets(machine)
    (machine,) = describe_machines("demo", [{"name": "node1", "serial_ports": [{"name": "port", "socket": "/" + "x" * 120}]}])
    with pytest.raises(BadInput, match="longer than the 107 bytes"):
        RackPaths(pathlib.Path("/r")).check_sockets(machine)
