# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users request for RAID controllers: from module parameters to plain settings, and to which items each of them applies."""

from __future__ import annotations

import os
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import MATCH_OPTIONS, Match, check_entry, read_match
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import checked_declarations
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import DRIVE_CLASSES, Controller, Drive, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import (
    CONTROLLER_ATTRIBUTES,
    DRIVE_ATTRIBUTES,
    VOLUME_ATTRIBUTES,
    Settings,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import is_twin
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen, Source

#: Options of a module, or an entry of a list that has them.
Options = t.Mapping[str, t.Any]

ALL = "all"
AUTO = "auto"

#: Options that select a tool, a controller and a volume.
TOOL_OPTIONS: t.Mapping[str, Options] = {
    "provider": {"type": "str", "default": AUTO, "choices": [AUTO, *sorted(TOOLS)]},
    "tool_path": {"type": "path"},
}
CONTROLLER_OPTIONS: t.Mapping[str, Options] = {**TOOL_OPTIONS, "id": {"type": "str", "default": ALL}, "serial": {"type": "str"}}
VOLUME_OPTIONS: t.Mapping[str, Options] = {name: {"type": "str"} for name in ("id", "name", "wwn")}
#: What tools report of a drive.
DRIVE_MATCH: t.Mapping[str, Options] = {
    **{name: MATCH_OPTIONS[name] for name in ("rotational", "model", "serial", "wwn", "size_min", "size_max")},
    "transport": {"type": "list", "elements": "str", "choices": ["sata", "sas", "scsi", "nvme"]},
}
VARIABLE = "raid_cache_controllers"


def _choice_of(attributes: t.Mapping[str, t.Sequence[str] | None]) -> dict[str, t.Any]:
    """An option for each attribute that has a list of values."""
    return {name.rpartition(".")[2]: {"type": "str", "choices": list(values)} for name, values in attributes.items() if values}


def argument_spec() -> dict[str, t.Any]:
    """The options of the module ``raid_cache``; values come from the one vocabulary of all providers."""
    drive_cache = {name: values for name, values in CONTROLLER_ATTRIBUTES.items() if name.startswith("drive_cache.")}
    plain = {name: values for name, values in CONTROLLER_ATTRIBUTES.items() if name not in drive_cache}
    permission = {"allow_unprotected": {"type": "bool", "default": False}}
    volume = {**VOLUME_OPTIONS, **_choice_of(VOLUME_ATTRIBUTES), **permission}
    drive = {"address": {"type": "str"}, "match": {"type": "dict", "options": DRIVE_MATCH}, **_choice_of(DRIVE_ATTRIBUTES), **permission}
    controller = {
        **CONTROLLER_OPTIONS,
        "volumes": {"type": "list", "elements": "dict", "default": [], "options": volume},
        "drives": {"type": "list", "elements": "dict", "default": [], "options": drive},
        "drive_cache": {"type": "dict", "options": _choice_of(drive_cache)},
        "cache_ratio": {"type": "int"},
        **_choice_of(plain),
        **permission,
        "require_effective": {"type": "bool", "default": True},
    }
    return {"controllers": {"type": "list", "elements": "dict", "required": True, "options": controller}}


@frozen
class ItemSpec:
    """Settings of one volume or drive, of ``all`` of them, or of the drives that a match chooses.

    :param by: what identifies it: ``id``, ``name``, ``wwn``, ``address`` or ``match``.
    :param value: its text; of a match the number of the entry.
    :param settings: attribute → wanted value, only those that were given.
    :param allow_unprotected: the permission of this item to keep writes where a power cut loses them.
    """

    by: str
    value: str
    settings: Settings = field(default_factory=dict)
    allow_unprotected: bool = False
    match: Match | None = None

    @property
    def for_all(self) -> bool:
        return self.value == ALL and self.by in ("id", "address")

    @property
    def label(self) -> str:
        if self.match is not None:
            return f"the match of entry {self.value} of drives"
        return self.value if self.by == "address" else f"{self.by} {self.value}"


@frozen
class ControllerSpec:
    """Everything requested for the controllers that one list entry names.

    :param protected_drives: declarations of drives that keep their cache through a power cut.
    """

    provider: str = AUTO
    tool_path: str | None = None
    id: str = ALL
    serial: str | None = None
    settings: Settings = field(default_factory=dict)
    volumes: tuple[ItemSpec, ...] = ()
    drives: tuple[ItemSpec, ...] = ()
    allow_unprotected: bool = False
    require_effective: bool = True
    protected_drives: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"controller {self.serial or self.id} (provider {self.provider})"


def parse_controllers(controllers: t.Sequence[Options], protected_drives: t.Sequence[str] = ()) -> list[ControllerSpec]:
    """The parameters of the module ``raid_cache``.

    :raises BadInput: for an entry that contradicts itself.
    """
    protected = tuple(checked_declarations(protected_drives))
    return [replace(_parse_controller(entry), protected_drives=protected) for entry in controllers]


def _parse_controller(entry: Options) -> ControllerSpec:
    drive_cache = entry.get("drive_cache") or {}
    settings: dict[str, t.Any] = {f"drive_cache.{name}": drive_cache[name] for name in DRIVE_CLASSES if drive_cache.get(name) is not None}
    settings.update({name: entry[name] for name in ("no_battery_write_cache", "cache_ratio") if entry.get(name) is not None})
    ratio = settings.get("cache_ratio")
    if ratio is not None and not 0 <= ratio <= 100:
        raise BadInput(f"cache_ratio must be between 0 and 100, not {ratio}.", item=str(entry.get("id")))
    if entry.get("provider", AUTO) == AUTO and entry.get("tool_path"):
        raise BadInput(tool_path_alone(entry["tool_path"]))
    return ControllerSpec(
        **parse_selection(entry),
        settings=settings,
        volumes=tuple(parse_item(one, VOLUME_OPTIONS, VOLUME_ATTRIBUTES, "A volume", f": {_compact(one)}") for one in entry.get("volumes") or ()),
        drives=tuple(_parse_drive(number, one) for number, one in enumerate(entry.get("drives") or (), 1)),
        require_effective=entry.get("require_effective", True),
    )


def _parse_drive(number: int, entry: Options) -> ItemSpec:
    check_entry(f"drives of {VARIABLE}", number, entry, "address")
    spec = parse_item(entry, ("address", "match"), DRIVE_ATTRIBUTES, "A drive", f": {_compact(entry)}")
    return spec if spec.by == "address" else replace(spec, value=str(number), match=read_match(entry["match"], number))


def parse_selection(entry: Options) -> dict[str, t.Any]:
    """Which controllers an entry is for, and its permission, as fields of its specification."""
    return {
        "provider": entry.get("provider") or AUTO,
        "tool_path": entry.get("tool_path"),
        "id": str(entry["id"]).strip() if entry.get("id") is not None else ALL,
        "serial": entry.get("serial"),
        "allow_unprotected": bool(entry.get("allow_unprotected")),
    }


def tool_path_alone(path: str, providers: str = "storcli, arcconf, …") -> str:
    """Why the path of a tool is not enough, as a sentence."""
    return f"tool_path {path} requires provider: set provider: {providers} in addition."


def parse_item(entry: Options, keys: t.Iterable[str], attributes: t.Iterable[str], label: str, end: str, item: str | None = None) -> ItemSpec:
    """One volume or drive with its settings.

    :param keys: what names it.
    :param label: the beginning of a message about it; ``end`` is the end, and ``item`` its item.
    :raises BadInput: if it has several names, or none.
    """
    given = [key for key in keys if entry.get(key) is not None]
    if len(given) != 1:
        raise BadInput(f"{label} is named by exactly one of {', '.join(keys)}; this one has {' and '.join(given) or 'none'}{end}", item=item)
    return ItemSpec(
        by=given[0],
        value=str(entry[given[0]]).strip(),
        settings={name: entry[name] for name in attributes if entry.get(name) is not None},
        allow_unprotected=bool(entry.get("allow_unprotected")),
    )


def _compact(entry: Options) -> str:
    return ", ".join(f"{key}: {value}" for key, value in entry.items() if value not in (None, False))


def choose_controllers(host: RaidState, spec: ControllerSpec) -> list[Seen]:
    """The controllers a list entry names. An entry that names its tool gets that tool, whichever others see the controller.

    :raises DeviceMissing: if there is none, listing those present.
    :raises BadInput: if a number means controllers of several tools.
    :raises NotUnderstood: if the output of a tool that may have reported them is damaged.
    """
    matching = [source for source in host.sources if _is_tool(source, spec)]
    for source in matching:
        _check_reading(source, spec)
    reachable = list(host.controllers) if spec.provider == AUTO else [seen for source in matching for seen in source.controllers]
    chosen = [one for one in reachable if spec.id in (ALL, one.controller.id) and spec.serial in (None, one.controller.serial)]
    if not chosen:
        raise DeviceMissing(_no_controller_message(host, matching, spec, reachable), item=spec.label)
    tools = sorted({one.controller.provider for one in chosen})
    if spec.id != ALL and len(tools) > 1:
        raise BadInput(f"controller {spec.id} is ambiguous: {' and '.join(tools)} each have one. Set provider: {tools[0]} (or {tools[1]}).", item=spec.label)
    return chosen


def is_same(one: Seen, other: Seen) -> bool:
    """Whether two entries mean one controller, perhaps through two tools."""
    if one.controller.provider == other.controller.provider:
        return one.controller.id == other.controller.id
    return is_twin(one.controller, other.controller)


def _no_controller_message(host: RaidState, matching: t.Sequence[Source], spec: ControllerSpec, reachable: t.Sequence[Seen]) -> str:
    if not host.sources:
        *others, last = TOOLS
        return (
            f"There is no RAID tool on this host: install the one of the vendor ({', '.join(others)} or {last}), "
            "name its place with provider and tool_path, or give this host no raid_cache_controllers."
        )
    tools = ", ".join(source.provider.tool for source in matching)
    there = ", ".join(one.controller.label for one in reachable) or "none"
    return f"{spec.label} is not on this host; controllers that {tools or 'the tools'} can see: {there}.{_unless_root()}"


def _unless_root() -> str:
    """A sentence for those who are not root: these tools then see nothing, or print something else."""
    return "" if os.geteuid() == 0 else f" This ran as user {os.geteuid()}, and these tools need root: set become: true."


def _check_reading(source: Source, spec: ControllerSpec) -> None:
    reading = source.reading
    if not reading.complete:
        what = reading.not_understood[0] if reading.not_understood else "it ends too early"
        raise NotUnderstood(
            f"The output of {source.provider.tool} is damaged, or it is not {source.provider.name} ({what}).{_unless_root()} "
            "Run it again; if it stays so, report the output.",
            item=spec.label,
            completed=source.evidence,
        )
    if reading.lost and spec.id == ALL and spec.serial is None:
        raise NotUnderstood(
            f"{source.provider.tool} did not report everything ({reading.lost[0]}), so nothing can be set for all controllers: "
            "name them one by one, or report the output.",
            item=spec.label,
            completed=source.evidence,
        )


def _is_tool(source: Source, spec: ControllerSpec) -> bool:
    if spec.provider not in (AUTO, source.provider.name):
        return False
    return spec.tool_path is None or source.provider.tool == spec.tool_path


def expand_volumes(controller: Controller, specs: t.Sequence[ItemSpec]) -> list[tuple[Volume, ItemSpec]]:
    """Each selected volume, with its settings: an entry that names it wins over the entry for all, setting by setting.

    :raises DeviceMissing: for a volume that is not there.
    :raises BadInput: for a volume that two entries name, or a name that two volumes have.
    """
    return _expand(controller, controller.volumes, specs, _find_volumes, "volume")


def expand_drives(controller: Controller, specs: t.Sequence[ItemSpec]) -> list[tuple[Drive, ItemSpec]]:
    """As :func:`expand_volumes`, for drives by their addresses. A match wins over the entry for all, and a later match over an earlier one."""
    return _expand(controller, controller.drives, specs, _find_drives, "drive")


Item = t.TypeVar("Item", Volume, Drive)


def _expand(
    controller: Controller,
    items: t.Sequence[Item],
    specs: t.Sequence[ItemSpec],
    find: t.Callable[[t.Sequence[Item], ItemSpec], list[Item]],
    kind: str,
) -> list[tuple[Item, ItemSpec]]:
    general = [spec for spec in specs if spec.for_all]
    if len(general) > 1:
        raise BadInput(f"{controller.label}: two entries are for all {kind}s: keep one.", item=kind)
    named: dict[int, ItemSpec] = {}
    for spec in specs:
        if spec.for_all or spec.match is not None:
            continue
        found = find(items, spec)
        if not found:
            there = "; ".join(_label(item, spec.by) for item in items[:20]) + ("; …" if len(items) > 20 else "")
            # 252:3 without quotes is a number to YAML.
            quotes = ' Write addresses in quotes, for example "252:3".' if spec.by == "address" and spec.value.isdigit() else ""
            raise DeviceMissing(f"{controller.label} has no {kind} with {spec.label}; it has: {there or 'none'}.{quotes}", item=spec.label)
        if len(found) > 1:
            raise BadInput(f"{controller.label} has {len(found)} {kind}s with {spec.label}: name it by id.", item=spec.label)
        place = next(index for index, item in enumerate(items) if item is found[0])
        if place in named:
            raise BadInput(f"{controller.label}: {named[place].label} and {spec.label} are the same {kind}: name it once.", item=spec.label)
        named[place] = spec
    joined = [_join([*general, *matching(specs, item), *([named[index]] if index in named else [])]) for index, item in enumerate(items)]
    return [(item, spec) for item, spec in zip(items, joined) if spec is not None]


def matching(specs: t.Sequence[ItemSpec], item: Volume | Drive) -> list[ItemSpec]:
    """The entries whose match a drive meets."""
    traits = item.traits if isinstance(item, Drive) else None
    return [spec for spec in specs if spec.match is not None and traits is not None and spec.match.meets(traits, traits.rotational)]


def _join(specs: t.Sequence[ItemSpec]) -> ItemSpec | None:
    """The entries of one item as one, from the most general to its own."""
    settings = {name: value for spec in specs for name, value in spec.settings.items()}
    # A permission for all drives or volumes is no permission for the one that has its own entry.
    return replace(specs[-1], settings=settings) if specs else None


def _find_volumes(volumes: t.Sequence[Volume], spec: ItemSpec) -> list[Volume]:
    if spec.by == "wwn":
        return [volume for volume in volumes if volume.wwn and volume.wwn == plain_wwn(spec.value)]
    return [volume for volume in volumes if getattr(volume, spec.by) == spec.value]


def _find_drives(drives: t.Sequence[Drive], spec: ItemSpec) -> list[Drive]:
    matching = plain_address(spec.value)
    return [drive for drive in drives if plain_address(drive.address) == matching]


def plain_wwn(text: str) -> str:
    """A world wide name without the decoration of tools and users."""
    word = text.strip().lower().rpartition("/")[2]
    for prefix in ("naa.", "0x", "wwn-0x", "eui."):
        if word.startswith(prefix):
            word = word[len(prefix) :]
    return word.replace(":", "").replace("-", "")


def plain_address(text: str) -> str:
    """``0, 5``, ``0 5`` and ``0,5`` are one drive; so are ``252:3`` and ``e252/s3``."""
    word = text.strip().lower().strip("/")
    if word.startswith("e") and "/s" in word:
        word = word[1:].replace("/s", ":")
    return ",".join(word.replace(",", " ").split())


def _label(item: Volume | Drive, by: str) -> str:
    if isinstance(item, Drive):
        return item.address
    if by == "wwn":
        return f"{item.id} ({item.wwn or 'no wwn reported'})"
    return f"{item.id} ({item.name or 'without a name'})"
