# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that writes the tables of some hosts: ``python -m …tables.worker``, an order as JSON on its standard input.

Prints one line of JSON for each host, and one with ``error`` if it cannot go on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import rare_garbage_collection
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import write_hosts


def main() -> None:
    order = json.load(sys.stdin)
    try:
        with rare_garbage_collection():
            for one in write_hosts(Path(order["campaign"]), order["name"], Path(order["root"]), order["writer"], order["due"]):
                print(json.dumps(one._asdict()), flush=True)
    except StorageError as error:
        print(json.dumps({"error": error.message}), flush=True)


if __name__ == "__main__":
    main()
