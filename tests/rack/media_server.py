# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with a cache, whose volumes QEMU attaches as disks: a process that outlives its start. Its description is in ``media/server.py``.

usage: tests/rack/media_server.py DESCRIPTION.json     prints the process ID
"""

import sys

from media.server import main

if __name__ == "__main__":
    main(sys.argv[1])
