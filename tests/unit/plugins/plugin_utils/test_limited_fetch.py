# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that sends more than it announced fills neither the disk nor the memory of the controller."""

from __future__ import annotations

import resource
import subprocess

import pytest
from ansible.errors import AnsibleError

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import DamagedArchive
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_fetch import fetch

MIB = 1 << 20
LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_AS)


class InProcess:
    """Copies in this process, as the connection plugins local and paramiko do."""

    def fetch_file(self, source, target):
        with open(target, "wb") as file:
            for _block in range(int(source)):
                file.write(b"x" * MIB)


class InChild:
    """Lets a program copy, as ssh with sftp or scp does."""

    def fetch_file(self, source, target):
        done = subprocess.run(["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={source}"], stderr=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise AnsibleError("failed to transfer file")


class InMemory:
    """Keeps everything in memory first, as ssh_transfer_method=piped does."""

    def fetch_file(self, source, target):
        blocks = [bytes(bytearray(MIB)) for _block in range(int(source))]
        with open(target, "wb") as file:
            file.write(b"".join(blocks))


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "archive"
    path.touch()
    return path


@pytest.mark.parametrize("connection", [InProcess(), InChild(), InMemory()])
def test_announced_size_is_received(target, connection):
    fetch(connection, "8", target, 8 * MIB, "node1")
    assert target.stat().st_size == 8 * MIB


@pytest.mark.parametrize("connection", [InProcess(), InChild(), InMemory()])
@pytest.mark.parametrize("sent", [1, 100, 601])
def test_excess_data_is_not_stored(target, connection, sent):
    before = [resource.getrlimit(what) for what in LIMITS]
    with pytest.raises(DamagedArchive, match=r"announced an archive of 10 KiB \(10240 bytes\) and sent"):
        fetch(connection, str(sent), target, 10240, "node1")
    assert target.stat().st_size <= 4 * MIB + 10240
    assert [resource.getrlimit(what) for what in LIMITS] == before


def test_memory_of_a_transfer_is_limited(target):
    with pytest.raises(DamagedArchive, match="sent at least 256 MiB"):
        fetch(InMemory(), "3000", target, 10240, "node1")


def test_other_failures_are_raised_and_limits_restored(target):
    before = [resource.getrlimit(what) for what in LIMITS]

    class Lost:
        def fetch_file(self, source, target):
            raise AnsibleError("lost")

    with pytest.raises(AnsibleError, match="lost"):
        fetch(Lost(), "/x", target, 10240, "node1")
    assert [resource.getrlimit(what) for what in LIMITS] == before
