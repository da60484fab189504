# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A file of a host, fetched by any connection plugin, of which no more is stored than was announced.

A connection plugin copies until the host stops sending. Limits of the process hold in it (setrlimit(2)): a file that grows beyond
RLIMIT_FSIZE, also of the sftp, scp or ssh that it starts, ends the copy with EFBIG or SIGXFSZ, and a transfer that is kept in memory, as
ssh_transfer_method=piped does, ends at RLIMIT_AS. Python ignores SIGXFSZ itself; Popen gives its default back to children.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import DamagedArchive
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import limited_process

#: Above the announced size, so that nothing else that is written meanwhile meets the limit: known_hosts, for example.
_ALLOWANCE = 4 * MIB

#: A transfer in memory has several copies of the content on their way.
_COPIES = 8
_MEMORY = 256 * MIB


def fetch(connection: t.Any, source: str, target: Path, announced: int, host: str) -> None:
    """Copy a file of a host.

    :param announced: its size in bytes, as the host announced.
    :raises DamagedArchive: if the host sends another number of bytes. ``target`` then has at most ``announced`` bytes and 4 MiB.
    """
    limit = announced + _ALLOWANCE
    try:
        with limited_process(_COPIES * announced + _MEMORY, limit):
            connection.fetch_file(source, str(target))
    except MemoryError:
        raise _wrong_size(host, announced, f"at least {format_size(_MEMORY)}") from None
    except Exception:
        # Every plugin has its own sentence for a copy that was ended: the size shows why it was.
        if target.stat().st_size >= limit:
            raise _wrong_size(host, announced, f"more than {format_size(limit)}") from None
        raise
    size = target.stat().st_size
    if size != announced:
        raise _wrong_size(host, announced, f"more than {format_size(limit)}" if size >= limit else f"{size} bytes")


def _wrong_size(host: str, announced: int, sent: str) -> DamagedArchive:
    return DamagedArchive(
        f"Host {host} announced an archive of {format_size(announced)} ({announced} bytes) and sent {sent}: nothing was kept."
        " Run again; if it happens again, check that host.",
        item=host,
    )
