# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes block queues so after a boot: a udev rules file of our own, and options of kernel modules in modprobe.d.

Sources: udev(7) (assignments of a line are made from left to right, each by writing the file); modprobe.d(5) (options of one module in
several files add up, and the last one of the same name wins; ``-`` and ``_`` are the same in names of modules);
Documentation/admin-guide/kernel-parameters.rst (``module.option=value``); moduleparam.h (how yes and no are spelled).
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.kernel_modules import built_in
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import ORDER, place_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import Queue
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

#: After 60-block-scheduler.rules and the like of distributions, and after the rules that find serial numbers.
RULES_FILE = "etc/udev/rules.d/99-cachefleet-block-queue.rules"
RULES_HEADER = (
    "# Written by cachefleet.storage.block_queue, one line per device, so that its queue is set as asked for after a reboot and after it is",
    "# plugged in again. Within a line the order matters. Lines are replaced device by device: change the inventory, not this file.",
)
OPTIONS_FILE = "etc/modprobe.d/cachefleet-block-queue.conf"
_OPTIONS_HEADER = "# Written by cachefleet.storage.block_queue, one line per module: change the inventory, not this file.\n"
#: What all names of one driver begin with: sd of sdaa, nvme of nvme0n1, dm- of dm-3.
_KERNEL_NAME = re.compile(r"^((?:xv|[shv])d(?=[a-z])|[a-z]+-?).*$")
_NAME = re.compile(r"^[A-Za-z0-9_-]+\Z")
_VALUE = re.compile(r"^[A-Za-z0-9_.,:+/=-]*\Z")
_TRUE, _FALSE = ("y", "yes", "1", "true", "on"), ("n", "no", "0", "false", "off")

#: Options by module.
Options = t.Mapping[str, t.Mapping[str, str]]


def rule_for(queue: Queue, settings: t.Mapping[str, int | str]) -> str | None:
    """The line that sets a queue when it appears; ``None`` if there is nothing to set.

    Mappings and arrays get what they are made of in a ``change``. Disks are ready when they are added, and every program that closes
    a disk after writing causes a ``change``: a measurement with other settings would be undone in its midst.

    :raises BadInput: if no rule can name the device.
    """
    if not settings:
        return None
    if queue.key is None:
        raise BadInput(queue.no_key or f"{queue.item} cannot have a boot rule: set persistent: false for it.", item=queue.item)
    actions = "add|change" if queue.name.startswith(("dm-", "md")) else "add"
    kernel = _KERNEL_NAME.sub(r"\1*", queue.name)
    effect = ", ".join(udev_rule.write_attribute(place_of(key), str(settings[key])) for key in ORDER if key in settings)
    return udev_rule.rule_line(queue.key, kernel, actions, effect)


@frozen
class ModuleSpec:
    """Options that a module should be loaded with."""

    module: str
    options: t.Mapping[str, str]


@frozen
class ModuleState:
    """What is known of one module of the list.

    :param kept: options in our file.
    :param elsewhere: by option, where else it is set and how: another file of modprobe.d, or the command line of the kernel.
    :param running: what the loaded module runs with, as far as it shows that.
    """

    module: str
    kept: t.Mapping[str, str] = field(default_factory=dict)
    elsewhere: t.Mapping[str, tuple[str, str]] = field(default_factory=dict)
    running: t.Mapping[str, str] = field(default_factory=dict)
    loaded: bool = False
    builtin: bool = False


def read_module_specs(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[ModuleSpec]:
    """The entries of the module's list.

    :raises BadInput: for a name or a value that cannot stand in the file, an option without a value, and a module that is listed twice.
    """
    specs = []
    for entry in entries:
        module = str(entry["module"])
        empty = next((key for key, value in (entry.get("options") or {}).items() if value is None), None)
        if empty is not None:
            raise BadInput(f"module_options: {empty} of {module} has no value: set one, or remove the option.", item=module)
        options = {str(key): _spelled(value) for key, value in (entry.get("options") or {}).items()}
        bad = [word for word in (module, *options) if not _NAME.match(word)] + [value for value in options.values() if not _VALUE.match(value)]
        if bad:
            raise BadInput(f"module_options: '{bad[0]}' cannot be written to a modprobe.d file: use names and values without blanks and quotes.", item=module)
        if _plain(module) in [_plain(spec.module) for spec in specs]:
            raise BadInput(f"module_options: the module {module} is listed twice: name it once.", item=module)
        specs.append(ModuleSpec(module, dict(sorted(options.items()))))
    return specs


def _spelled(value: t.Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _plain(module: str) -> str:
    return module.replace("-", "_")


def parse_options(text: str) -> dict[str, dict[str, str]]:
    """The ``options`` lines of a file of modprobe.d, by module with ``_`` for ``-``."""
    found: dict[str, dict[str, str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == "options":
            found.setdefault(_plain(words[1]), {}).update({key: value for key, separator, value in (word.partition("=") for word in words[2:])})
    return found


def render_options(options: Options) -> str:
    """The text of our file; empty if there is nothing to keep."""
    lines = [f"options {module} {' '.join(f'{key}={value}' for key, value in sorted(own.items()))}\n" for module, own in sorted(options.items()) if own]
    return _OPTIONS_HEADER + "".join(lines) if lines else ""


def read_options(root: Path = Path("/")) -> dict[str, dict[str, str]]:
    """The options that our file holds, by module.

    :raises CommandFailed: if it is there and cannot be read.
    """
    return parse_options(read_file(root / OPTIONS_FILE))


def write_options(module: str, options: t.Mapping[str, str], root: Path = Path("/")) -> None:
    """Replace the line of one module; without options it is taken away.

    :raises CommandFailed: if the file cannot be written.
    """
    replace_file(root / OPTIONS_FILE, render_options({**read_options(root), _plain(module): options}))


def read_modules(specs: t.Sequence[ModuleSpec], root: Path = Path("/")) -> list[ModuleState]:
    """What is known of every requested module; from files alone."""
    if not specs:
        return []
    kept = read_options(root)
    builtin = built_in(root) or frozenset()
    others = [(place, parse_options(read_file(place))) for place in sorted((root / "etc/modprobe.d").glob("*.conf")) if place != root / OPTIONS_FILE]
    words = [word.partition("=") for word in read_file(root / "proc/cmdline").split()]
    found = []
    for spec in specs:
        name = _plain(spec.module)
        elsewhere = {key: (f"/{place.relative_to(root)}", value) for place, options in others for key, value in options.get(name, {}).items()}
        for word, _separator, value in words:
            owner, dot, key = word.partition(".")
            if dot and _plain(owner) == name:
                elsewhere[key] = ("the command line of the kernel", value)
        place = root / "sys/module" / name
        found.append(
            ModuleState(
                module=spec.module,
                kept=kept.get(name, {}),
                elsewhere={key: elsewhere[key] for key in spec.options if key in elsewhere},
                running={key: text for key in spec.options for text in [read_attribute(place / "parameters" / key)] if text is not None},
                loaded=place.is_dir(),
                builtin=name in builtin,
            )
        )
    return found


def same_option(one: str, other: str) -> bool:
    """Whether two spellings of an option are the same value: 1 and Y, 0x10 and 16."""
    if one == other:
        return True
    first, second = one.lower(), other.lower()
    if (first in _TRUE and second in _TRUE) or (first in _FALSE and second in _FALSE):
        return True
    try:
        return int(first, 0) == int(second, 0)
    except ValueError:
        return False


def module_warnings(state: ModuleState, spec: ModuleSpec) -> list[str]:
    """Warnings about the options of a module that are written."""
    warnings = []
    for key, value in spec.options.items():
        if key in state.elsewhere and not same_option(state.elsewhere[key][1], value):
            place, other = state.elsewhere[key]
            warnings.append(f"{spec.module}: {key} is {value} in /{OPTIONS_FILE} and {other} in {place}: remove it there, or it may take precedence.")
        if key in state.running and not same_option(state.running[key], value):
            warnings.append(
                f"{spec.module}: {key} is {value} in /{OPTIONS_FILE} and {state.running[key]} in the running module: it takes effect when the module is "
                "loaded again or after a reboot; if the initramfs loads the module, rebuild it first (update-initramfs -u or dracut -f)."
            )
        elif state.loaded and key not in state.running:
            warnings.append(f"{spec.module}: the loaded module does not show an option {key}: see modinfo -p {spec.module}.")
    return warnings
