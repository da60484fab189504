# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that are null, or that the operating system does not take: one sentence each."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_verifier, host_witness, module_writer, writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun

RUN = "5a" * 16
OPTIONS = {
    "state": "started",
    "run": RUN,
    "secret": "ab" * 32,
    "witness_address": "127.0.0.1",
    "witness_port": 1,
    "target": {"device": None, "file": "/nowhere/x", "allow_data_loss": False, "identity": None, "size": "1M"},
    "protected_drives": [],
    "flushed_virtual_disks": [],
    "layout": "in_place",
    "sync": "fsync",
    "direct": True,
    "order": "random",
    "depth": 1,
    "block_size": 4096,
    "bulk": False,
    "seconds": 10,
}


@pytest.mark.parametrize("name", ["secret", "target", "witness_address", "witness_port"])
def test_option_that_is_null_is_rejected(tmp_path, name):
    with pytest.raises(BadInput, match=rf"^{name} must be set to start a writer\.$"):
        module_writer.carry_out({**OPTIONS, name: None}, tmp_path, check_mode=False)


@pytest.mark.parametrize("port", [0, -1, 65536, 10**40])
def test_port_that_does_not_exist_is_rejected(tmp_path, port):
    with pytest.raises(BadInput, match="witness_port must be between 1 and 65535"):
        module_writer.carry_out({**OPTIONS, "witness_port": port}, tmp_path, check_mode=False)


@pytest.mark.parametrize("address", ["\ud800", "x" * 300])
def test_address_that_is_none_is_rejected(address):
    with pytest.raises(BadInput, match="is neither an IP address nor the name of a host") as caught:
        writer.connect(address, 1, b"s" * 32, {})
    assert caught.value.message.encode()
    with pytest.raises(BadInput, match="is neither an IP address nor a name") as caught:
        host_witness.addresses_of([address])
    assert caught.value.message.encode()


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 3000])
def test_folder_and_log_that_cannot_be_paths_are_rejected(tmp_path, name):
    with pytest.raises(BadInput, match=r"^folder '.*is not a path"):
        BackgroundRun(tmp_path / name, RUN)
    with pytest.raises(BadInput, match=r"^log '.*is not a path"):
        host_verifier.verify(tmp_path / name, RUN, lambda: Devices([]), Runner(), timeout=0)


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), -1.0])
def test_timeout_that_is_not_finite_is_rejected(tmp_path, timeout):
    with pytest.raises(BadInput, match="timeout must be a number of seconds from 0"):
        host_verifier.verify(tmp_path / "log", RUN, lambda: Devices([]), Runner(), timeout=timeout)
