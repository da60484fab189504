# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a build of arcconf prints a family of cards: its templates (``templates/arcconf.txt``), columns, rules and titles."""

from __future__ import annotations

import typing as t

from .simulator import State
from .templates import filled, rows

Lines = t.List[str]
Labels = t.Mapping[str, "str | None"]

MAIN_RULE = "-" * 70
SHORT_RULE = "-" * 56

#: How a drive or an old build says what is on.
WRITE_CACHE = {"wb": "Enabled (write-back)", "wt": "Disabled (write-through)"}


class Layout(t.NamedTuple):
    """One build of the tool on one family of cards.

    :param adapter: name of its template, as are volume, drive and enclosure.
    :param column: where the colon of adapter and volume lines stands.
    :param rule: length of the rules inside the adapter section.
    :param words: ``mode``: ``Read-cache mode``, ``Write-cache mode``; ``status``: ``Read-cache status``, ``Write-cache status``; ``smart``.
    :param capital: whether it says ``Logical Device`` (else ``Logical device``).
    :param segments: how a member is written: ``place`` (Controller:1,…), ``size`` (…MB, SATA, HDD, …), ``address`` (0,1).
    :param padded_serials: serial numbers as ATA drives give them, right-justified in 20 characters.
    :param padded_titles: titles inside the section of drives (and of a SmartRAID adapter) filled with blanks to the column.
    :param drives_tail: blank lines after the last drive.
    :param grammar: which usage texts and words the build knows.
    """

    adapter: str
    volume: str
    drive: str
    enclosure: str = "series6 old"
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
    grammar: str = "series6"
    firmware_versions: tuple[str, ...] = ("Firmware", "Staged Firmware", "BIOS", "Driver", "Boot Flash")


_SERIES6 = Layout("series6 old", "series6", "series6", padded_serials=True, drives_tail=2)
_CURRENT = Layout("series6 new", "series6 new", "series6 new", capital=True, segments="size", padded_titles=True, device_details=("phy",))
_SERIES8 = _CURRENT._replace(adapter="series8", drive="series8", drives_tail=2, device_details=("phy", "runtime counters"), grammar="series7")
_HBA = Layout(
    "hba",
    "smart",
    "hba",
    "smart",
    words="smart",
    capital=True,
    segments="size",
    padded_titles=True,
    shows_channels=True,
    device_details=("smart phys", "smart counters"),
    connectors="section, named",
    smart=True,
    grammar="hba",
    firmware_versions=("Firmware", "Driver"),
)
_SMART = _HBA._replace(
    adapter="smart",
    drive="smart",
    column=46,
    rule=67,
    padded_adapter_titles=True,
    connectors="in adapter, named",
    grammar="smart",
    firmware_versions=("Firmware", "Driver", "SEEPROM Version"),
)

LAYOUTS: t.Mapping[str, Layout] = {
    "series6 old": _SERIES6._replace(volume="series6 old", drive="series6 old", words="mode", drives_tail=1),
    "series6": _SERIES6,
    "series6 new": _CURRENT._replace(connectors="in adapter, lanes"),
    "maxcache 2": _SERIES6._replace(adapter="maxcache 2", volume="maxcache 2", drive="maxcache 2", grammar="series6 maxcache"),
    "maxcache 3": Layout("maxcache 3", "maxcache 3", "series6", grammar="series7 maxcache"),
    "series7": _SERIES6._replace(adapter="series7", volume="series7", drive="series7", grammar="series7"),
    "series8": _SERIES8._replace(connectors="section, lanes"),
    # As printed by arcconf 2.x and 3.x for an ASR8805 in public test data and an ASR7805: what is set for all drives is below the heading of the cache.
    "series8 new": _SERIES8._replace(adapter="series8 new", connectors="in adapter, lanes"),
    # No capture: the lines of series 8 with those of maxCache 3.0 of series 7 at the same places.
    "series8 maxcache": _SERIES8._replace(adapter="series8 maxcache", volume="series8 maxcache", connectors="section, lanes", grammar="series7 maxcache"),
    "battery": Layout("battery", "battery", "battery", "battery", words="mode", segments="address"),
    "smart": _SMART,
    "smart cisco": _SMART._replace(adapter="smart cisco", volume="smart cisco", extra_volume_sections=True),
    "hba": _HBA,
}


def layout_of(controller: State) -> Layout:
    return LAYOUTS[controller["layout"]]


def line(layout: Layout, indent: int, label: str, value: str) -> str:
    """``Label      : value``. Empty values end at the colon, on SmartRAID after one more blank."""
    text = f"{' ' * indent}{label}".ljust(layout.column) + ":"
    return f"{text} {value}" if value or layout.smart else text


def labels(name: str, values: t.Mapping[str, t.Any]) -> dict[str, str | None]:
    """Values by their labels in lower case, from ``values: name``."""
    return {label.casefold(): str(value) for label, value in filled("arcconf", f"values: {name}", values).items()}


def block(
    layout: Layout, template: str, indent: int, known: Labels | None = None, parts: t.Mapping[str, t.Callable[[], Lines]] | None = None, **values: t.Any
) -> Lines:
    """The lines of one template. A label without a value, here and in what is known by labels, is not printed."""
    printed: Lines = []
    for label, constant in rows("arcconf", template, values, default=None):
        if label.startswith("["):
            printed += titled(layout, label[1:-1])
        elif label.startswith("<"):
            printed += [""] if label == "<blank>" else (parts or {})[label[1:-1]]()
        else:
            value = (known or {}).get(label.casefold(), constant)
            if value is not None:
                printed.append(line(layout, indent, label, str(value)))
    return printed


def titled(layout: Layout, title: str) -> Lines:
    """A title inside the adapter section."""
    rule = "   " + "-" * layout.rule
    text = f"   {title}"
    return [rule, text.ljust(layout.column) if layout.padded_adapter_titles else text, rule]


def section(title: str, *, rule: str = MAIN_RULE) -> Lines:
    return [rule, title, rule]


def places(controller: State, drive: State) -> tuple[str, str]:
    """Where a drive is, in the words of the drives and in the words of the volumes."""
    slot, smart = drive["slot"], controller["generation"] == "smart"
    connector = "CN2" if controller["location"] == "backplane" else "CN0"
    if controller["location"] == "connector":
        return f"Connector {slot // 4}, Device {slot % 4}", f"Connector:{slot // 4},Device:{slot % 4}"
    if controller["location"] == "backplane":
        return f"Backplane 0, Slot {slot}(Connector 0:{connector})", f"Connector:{connector},Backplane:0,Slot:{slot}"
    if controller["location"] == "direct":
        return f"Enclosure Direct Attached, Slot {slot}(Connector {slot // 4}:CN{slot // 4})", f"Connector:CN{slot // 4},Slot:{slot}"
    if smart:
        return f"Enclosure 1, Slot {slot}(Connector 0:{connector})", f"Connector:{connector},Enclosure:1,Slot:{slot}"
    after = "(Connector 0)" if layout_of(controller).segments == "size" else ""
    return f"Enclosure 0, Slot {slot}{after}", f"Enclosure:0,Slot:{slot}"
