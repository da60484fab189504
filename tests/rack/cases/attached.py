# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node1 of case A has: a controller with a volume and a JBOD drive of each drive model, and SATA ports with one of each. A process of a machine.

usage: tests/rack/cases/attached.py adaptec|sata FOLDER      the folder of the machine; prints the process ID
"""

from __future__ import annotations

import json
import sys
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from media.case_a import SMALLER
from media.rows import I545S, S3500, X25_M
from media.server import main

DRIVES = (S3500, X25_M, I545S)
#: By controller: its row, and the first letter of its disks with their RAID level.
CONTROLLERS = {"adaptec": ("Adaptec 6805", (("r", "0"), ("j", "jbod"))), "sata": ("SATA port", (("s", "jbod"),))}


def description(controller: str, folder: Path) -> dict[str, t.Any]:
    """The disks are named by attachment and drive: ``r0`` is a volume of the first drive."""
    row, attachments = CONTROLLERS[controller]
    disks = [(f"{letter}{number}", level, drive) for letter, level in attachments for number, drive in enumerate(DRIVES)]
    return {
        "controller": row,
        "smaller": SMALLER,
        "drives": {name: {"model": drive.name} for name, _level, drive in disks},
        "volumes": {
            name: {"level": level, "drives": [name], "file": str(folder / f"{name}.raw"), "socket": str(folder / f"{name}.nbd")}
            for name, level, _drive in disks
        },
        **{kind: str(folder / f"{controller}.{kind}") for kind in ("control", "module", "settings")},
    }


if __name__ == "__main__":
    place = Path(sys.argv[2])
    path = place / f"{sys.argv[1]}.json"
    path.write_text(json.dumps(description(sys.argv[1], place)))
    main(str(path))
