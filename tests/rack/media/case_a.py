# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Case A in simulated time: the eight ways of attaching a drive, and what each of them does and loses.

usage: python -m media.case_a     in tests/rack; prints the table
"""

from __future__ import annotations

import dataclasses
import typing as t

from .clock import Clock
from .controller import WRITE_BACK, WRITE_THROUGH, Controller, Volume
from .drive import IDLE, Drive
from .load import Load, measured, requests
from .rows import ADAPTEC_6805, I320, I545S, S3500, SATA_PORT, X25_M, ControllerRow, DriveRow, scaled

#: Sizes are smaller by this factor in simulated time, and rates are as they are.
SMALLER = 1024
DRIVES = (S3500, X25_M, I320, I545S)


@dataclasses.dataclass(frozen=True)
class Mode:
    """How a drive is attached, and which caches are enabled."""

    name: str
    controller: ControllerRow
    level: str
    drive_cache: bool
    policy: str = WRITE_THROUGH


MODES = (
    Mode("RAID off", ADAPTEC_6805, "0", False),
    Mode("RAID drive", ADAPTEC_6805, "0", True),
    Mode("RAID controller", ADAPTEC_6805, "0", False, WRITE_BACK),
    Mode("RAID both", ADAPTEC_6805, "0", True, WRITE_BACK),
    Mode("JBOD off", ADAPTEC_6805, "jbod", False),
    Mode("JBOD on", ADAPTEC_6805, "jbod", True),
    Mode("SATA off", SATA_PORT, "jbod", False),
    Mode("SATA on", SATA_PORT, "jbod", True),
)
BY_NAME = {mode.name: mode for mode in MODES}


def built(mode: Mode, row: DriveRow, clock: Clock, *, drives: int = 1, smaller: float = SMALLER, keeper: t.Any = None) -> list[Volume]:
    """Drives of a kind, each attached as a mode says."""
    controller = Controller(clock, scaled(mode.controller, 1, smaller), keeper)
    volumes = []
    for number in range(drives):
        drive = Drive(clock, scaled(row, 1, smaller), idle=IDLE / smaller)
        drive.write_cache = mode.drive_cache
        volumes.append(Volume(controller, f"v{number}", mode.level, [drive], policy=mode.policy))
    return volumes


def run(mode: Mode, row: DriveRow, *, sync: bool = True, drives: int = 1, smaller: float = SMALLER, gigabytes: float = 10) -> list[Load]:
    """The load of the case: random writes of 4 KiB at depth 16 with fdatasync, until so many GB are written."""
    clock = Clock()
    volumes = built(mode, row, clock, drives=drives, smaller=smaller)
    return measured(clock, [Load(clock, volume, requests(gigabytes, smaller), sync=sync, seed=number) for number, volume in enumerate(volumes)])


def columns(row: DriveRow, modes: t.Iterable[Mode] = MODES) -> dict[str, float]:
    """IOPS by mode."""
    return {mode.name: run(mode, row)[0].rate() for mode in modes}


def main() -> None:
    for row in DRIVES:
        bound = run(BY_NAME["JBOD on"], row, sync=False)[0].rate()
        print(row.name, *(f"{name} {rate:,.0f}" for name, rate in columns(row).items()), f"no fdatasync {bound:,.0f}", sep="\n  ")


if __name__ == "__main__":
    main()
