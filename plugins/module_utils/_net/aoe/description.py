# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ATA over Ethernet as the variables of the role ``storage_network``: what a host uses, and what it serves."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Entry, Permission, Values, Variable, objection_of, prove
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import DEFAULT_BUFFERS, AoeExport, parse_arguments, running_exports
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.sysfs import read_aoe_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import INTERFACES, OPTIONS_FILE, PARAMETERS, AoeInitiatorLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import read_spec as read_initiator
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target import SYSCTL_FILE, AoeTargetLayer, AoeTargetsSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import read_spec as read_targets
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.vblade_files import VbladeFile, read_files

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

USED_INTERFACES, OPTIONS, USED, SERVED, BUFFER = (f"storage_network_aoe_{name}" for name in ("interfaces", "options", "devices", "targets", "receive_buffer"))
_MODULE = "sys/module/aoe"
_IGNORED = Permission("allow_ignored_flushes", "vblade passes no flush down, and a cache below it may be volatile: synced data may be lost in a power failure.")
_BUFFER_LINE = re.compile(r"^net\.core\.rmem_max = (\d+)$", re.MULTILINE)


def describe_initiator(runner: Runner, root: Path = Path("/")) -> list[Variable]:
    """The interfaces on which the driver looks for targets, its options that this collection wrote, and the targets that are up."""
    names = (USED_INTERFACES, OPTIONS, USED)
    if not (root / _MODULE).is_dir():
        return [Variable(name) for name in names]
    live = [word for word in re.split(r"[,\s]+", read_file(root / _MODULE / "parameters" / INTERFACES).strip("\0\n ")) if word]
    devices = read_aoe_devices(root)
    if not live:
        # The driver begins so; it matters where something is used.
        if not devices:
            return [Variable(name) for name in names]
        note = "The AoE driver discovers targets on all interfaces, which cannot be described: set storage_network_aoe_interfaces."
        return [Variable(USED_INTERFACES, notes=(note,)), Variable(OPTIONS), Variable(USED)]
    written = _written_options(read_file(root / OPTIONS_FILE))
    listed = written.pop(INTERFACES, "").split(",")
    options = {option: int(written[name]) for option, name in PARAMETERS.items() if written.get(name, "").isdigit()}
    up = [{"name": device.name} for device in devices if device.up]
    # The order means nothing to the driver, and the file is compared as text.
    form = {"interfaces": listed if set(listed) == set(live) else live, **options, "devices": up}
    state = AoeInitiatorLayer(runner, read_initiator(form), root).read()
    entries, notes = prove(
        [Candidate("The AoE initiator", (form,))], lambda forms: objection_of(lambda: AoeInitiatorLayer(runner, read_initiator(forms[0]), root), state)
    )
    if not entries:
        return [Variable(USED_INTERFACES, notes=notes), Variable(OPTIONS), Variable(USED)]
    targets = tuple(Entry(one) for one in up)
    return [Variable(USED_INTERFACES, value=form["interfaces"]), Variable(OPTIONS, value=options or None), Variable(USED, targets)]


def _written_options(text: str) -> dict[str, str]:
    """The options of the module in our file of modprobe.d."""
    words = [word for line in text.splitlines() if line.startswith("options aoe ") for word in line.split()[2:]]
    return {key: value for key, _separator, value in (word.partition("=") for word in words)}


def describe_targets(runner: Runner, root: Path = Path("/"), *, make_layer: t.Callable[..., AoeTargetLayer] = AoeTargetLayer) -> list[Variable]:
    """Every target that runs or has a file of vblade, and the receive buffer that this collection has set.

    :param make_layer: the layer of a specification.
    """
    exports = _exports(read_files(root), running_exports(root))
    match = _BUFFER_LINE.search(read_file(root / SYSCTL_FILE))
    size = int(match.group(1)) if match else None
    forms = [_form(export) for export in exports]
    state = make_layer(runner, read_targets(forms, size), root).read()
    swallowed = {item for item, target in state.targets.items() if target.swallowed}

    def check(entries: t.Sequence[Values]) -> t.Any:
        return objection_of(lambda: make_layer(runner, read_targets(entries, size), root), state)

    candidates = [
        Candidate(f"The AoE target {export.address} on {export.interface}", (form,), required=(_IGNORED,) if _item(export) in swallowed else ())
        for export, form in zip(exports, forms)
    ]
    objection = objection_of(lambda: make_layer(runner, AoeTargetsSpec((), size), root), state)
    if objection is not None:
        size = None
    entries, notes = prove(candidates, check)
    buffer_notes = (f"The receive buffer is not described: {objection.reason}",) if objection is not None else ()
    return [Variable(SERVED, entries, notes=notes), Variable(BUFFER, value=size, notes=buffer_notes)]


def _item(export: AoeExport) -> str:
    return f"{export.address} on {export.interface}"


def _exports(files: t.Mapping[str, VbladeFile], running: t.Sequence[AoeExport]) -> list[AoeExport]:
    """What runs, and what has a file and does not."""
    found = {_item(export): export for export in running}
    for file in files.values():
        values = file.values
        words = [*values.get("options", "").split(), *(values.get(name, "") for name in ("shelf", "slot", "netif", "filename"))]
        export = parse_arguments(words)
        if export is not None:
            found.setdefault(_item(export), export)
    return [found[item] for item in sorted(found)]


def _form(export: AoeExport) -> dict[str, t.Any]:
    form: dict[str, t.Any] = {"shelf": export.shelf, "slot": export.slot, "interface": export.interface, "device": export.path}
    usual = {"direct": True, "sync": False, "read_only": False, "buffers": DEFAULT_BUFFERS}
    form.update({name: getattr(export, name) for name, value in usual.items() if getattr(export, name) != value})
    return {**form, "macs": list(export.macs)} if export.macs else form
