# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which labels a build of arcconf prints, in which order and spelling: the labels changed with nearly every build.

A template is text, one entry per line: ``Label`` (its value comes from the state), ``Label = value`` (the value that the state
does not change), ``[Title]`` (a title between rules), ``<name>`` (a part that a function prints, see ``arcconf_text``).
The labels and their order were read from captured outputs; where a layout has no capture, its comment says so.
"""

from __future__ import annotations

import typing as t

from . import arcconf_layouts_aacraid as aacraid
from . import arcconf_layouts_smart as smart


class Layout(t.NamedTuple):
    """How one build of the tool prints one family of cards.

    :param column: where the colon of adapter and volume lines stands.
    :param rule: length of the rules inside the adapter section.
    :param words: ``mode``: ``Read-cache mode``, ``Write-cache mode``; ``status``: ``Read-cache status``, ``Write-cache status``; ``smart``.
    :param capital: whether it says ``Logical Device`` (else ``Logical device``).
    :param segments: how a member is written: ``place`` (Controller:1,…), ``size`` (…MB, SATA, HDD, …), ``address`` (0,1).
    :param padded_serials: serial numbers as ATA drives give them, right-justified in 20 characters.
    :param padded_titles: titles inside the section of drives (and of a SmartRAID adapter) filled with blanks to the column.
    :param drives_tail: blank lines after the last drive.
    :param grammar: which usage texts and words the build knows (``arcconf_usage``).
    """

    adapter: str
    volume: str
    drive: str
    enclosure: str
    column: int = 44
    rule: int = 56
    words: str = "status"
    capital: bool = False
    segments: str = "place"
    padded_serials: bool = False
    padded_titles: bool = False
    padded_adapter_titles: bool = False
    drives_tail: int = 1
    shows_channels: bool = False
    device_details: tuple[str, ...] = ()
    connectors: str = "none"
    smart: bool = False
    extra_volume_sections: bool = False
    grammar: str = "aacraid"
    firmware_versions: tuple[str, ...] = ("Firmware", "Staged Firmware", "BIOS", "Driver", "Boot Flash")


_PHY_AND_COUNTERS = ("smart phys", "smart counters")

LAYOUTS: t.Mapping[str, Layout] = {
    "series6 old": Layout(
        aacraid.SERIES6_OLD_ADAPTER,
        aacraid.SERIES6_OLD_VOLUME,
        aacraid.SERIES6_OLD_DRIVE,
        aacraid.ENCLOSURE,
        words="mode",
        padded_serials=True,
        grammar="series6",
    ),
    "series6": Layout(
        aacraid.SERIES6_OLD_ADAPTER, aacraid.SERIES6_VOLUME, aacraid.SERIES6_DRIVE, aacraid.ENCLOSURE, padded_serials=True, drives_tail=2, grammar="series6"
    ),
    "series6 new": Layout(
        aacraid.SERIES6_NEW_ADAPTER,
        aacraid.CURRENT_VOLUME.format(maxcache_status="", maxcache=""),
        aacraid.SERIES6_NEW_DRIVE,
        aacraid.ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        device_details=("phy",),
        connectors="in adapter, lanes",
        grammar="series6",
    ),
    "maxcache 2": Layout(
        aacraid.POOL_ADAPTER, aacraid.POOL_VOLUME, aacraid.POOL_DRIVE, aacraid.ENCLOSURE, padded_serials=True, drives_tail=2, grammar="series6 maxcache"
    ),
    "maxcache 3": Layout(
        aacraid.SERIES7_MAXCACHE_ADAPTER, aacraid.SERIES7_MAXCACHE_VOLUME, aacraid.SERIES6_DRIVE, aacraid.ENCLOSURE, grammar="series7 maxcache"
    ),
    "series7": Layout(
        aacraid.SERIES7_ADAPTER, aacraid.SERIES7_VOLUME, aacraid.SERIES7_DRIVE, aacraid.ENCLOSURE, padded_serials=True, drives_tail=2, grammar="series7"
    ),
    "series8": Layout(
        aacraid.SERIES8_ADAPTER.format(maxcache=""),
        aacraid.CURRENT_VOLUME.format(maxcache_status="", maxcache=""),
        aacraid.SERIES8_DRIVE,
        aacraid.ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        drives_tail=2,
        device_details=("phy", "runtime counters"),
        connectors="section, lanes",
        grammar="series7",
    ),
    # As printed by arcconf 2.x and 3.x for an ASR8805 in public test data and an ASR7805.
    "series8 new": Layout(
        aacraid.SERIES8_NEW_ADAPTER,
        aacraid.CURRENT_VOLUME.format(maxcache_status="", maxcache=""),
        aacraid.SERIES8_DRIVE,
        aacraid.ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        drives_tail=2,
        device_details=("phy", "runtime counters"),
        connectors="in adapter, lanes",
        grammar="series7",
    ),
    # No capture: the lines of series 8 with those of maxCache 3.0 of series 7 at the same places.
    "series8 maxcache": Layout(
        aacraid.SERIES8_ADAPTER.format(maxcache="maxCache flush and fetch rate\nmaxCache Read, Write Balance Factor\nmaxCache Dirty Page Threshold"),
        aacraid.CURRENT_VOLUME.format(maxcache_status="maxCache Status", maxcache=aacraid.MAXCACHE_LINES.replace("MaxCache", "maxCache")),
        aacraid.SERIES8_DRIVE,
        aacraid.ENCLOSURE,
        capital=True,
        segments="size",
        padded_titles=True,
        drives_tail=2,
        device_details=("phy", "runtime counters"),
        connectors="section, lanes",
        grammar="series7 maxcache",
    ),
    "battery": Layout(
        aacraid.BATTERY_ADAPTER, aacraid.BATTERY_VOLUME, aacraid.BATTERY_DRIVE, aacraid.BATTERY_ENCLOSURE, words="mode", segments="address", grammar="series6"
    ),
    "smart": Layout(
        smart.SMART_ADAPTER,
        smart.SMART_VOLUME.format(sed=""),
        smart.SMART_DRIVE.format(part_numbers="Drive SKU Number = Not Applicable\nDrive Part Number = Not Applicable"),
        smart.SMART_ENCLOSURE,
        column=46,
        rule=67,
        words="smart",
        capital=True,
        segments="size",
        padded_titles=True,
        padded_adapter_titles=True,
        shows_channels=True,
        device_details=_PHY_AND_COUNTERS,
        connectors="in adapter, named",
        smart=True,
        grammar="smart",
        firmware_versions=("Firmware", "Driver", "SEEPROM Version"),
    ),
    "smart cisco": Layout(
        smart.CISCO_ADAPTER,
        smart.SMART_VOLUME.format(sed="SED Encryption = Disabled"),
        smart.SMART_DRIVE.format(part_numbers="Drive SKU Number = Not Applicable\nDrive Part Number = Not Applicable"),
        smart.SMART_ENCLOSURE,
        column=46,
        rule=67,
        words="smart",
        capital=True,
        segments="size",
        padded_titles=True,
        padded_adapter_titles=True,
        shows_channels=True,
        device_details=_PHY_AND_COUNTERS,
        connectors="in adapter, named",
        smart=True,
        extra_volume_sections=True,
        grammar="smart",
        firmware_versions=("Firmware", "Driver", "SEEPROM Version"),
    ),
    "hba": Layout(
        smart.HBA_ADAPTER,
        smart.SMART_VOLUME.format(sed=""),
        smart.SMART_DRIVE.format(part_numbers="").replace("Freeze Support = False", "Freeze Support = True"),
        smart.SMART_ENCLOSURE,
        words="smart",
        capital=True,
        segments="size",
        padded_titles=True,
        shows_channels=True,
        device_details=_PHY_AND_COUNTERS,
        connectors="section, named",
        smart=True,
        grammar="hba",
        firmware_versions=("Firmware", "Driver"),
    ),
}
