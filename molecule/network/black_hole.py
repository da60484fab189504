# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets large packets vanish on an interface while its MTU is another than now, as behind a switch that does not take them.

usage: black_hole.py INTERFACE [SECONDS]      how long to wait for the change

TCP between a machine of the rack and its host never has packets of more than 1500 bytes, so what is large is more than 1000 here.
"""

from __future__ import annotations

import subprocess
import sys
import time


def main() -> None:
    name, end = sys.argv[1], time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 120)
    before = mtu(name)
    while mtu(name) == before and time.monotonic() < end:
        time.sleep(0.02)
    if mtu(name) == before:
        return
    tc("qdisc", "replace", "dev", name, "clsact")
    tc("filter", "add", "dev", name, "egress", "protocol", "ip", "basic", "match", "cmp(u16 at 2 layer network gt 1000)", "action", "drop")
    try:
        while mtu(name) != before and time.monotonic() < end + 300:
            time.sleep(0.1)
    finally:
        tc("qdisc", "del", "dev", name, "clsact")


def mtu(name: str) -> str:
    with open(f"/sys/class/net/{name}/mtu", encoding="ascii") as stream:
        return stream.read()


def tc(*words: str) -> None:
    subprocess.run(["tc", *words], check=True)


if __name__ == "__main__":
    main()
