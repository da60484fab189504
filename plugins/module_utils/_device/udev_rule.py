# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A udev rules file of our own with one line per device: which property names the device, and the text of the file.

Every function works on the file of drive write caches unless it is given another file, heading or list of properties.

Source of the format: udev(7). Values are compared as shell patterns and have no portable escape for a quotation mark, and
``$`` and ``%`` begin substitutions, so a value from a host goes into a rule only if it consists of harmless characters.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import config_values as written
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: Runs after 60-persistent-storage.rules, which sets the serial and the WWN, and after 85-hdparm.rules of Debian.
RULES_FILE = "etc/udev/rules.d/99-cachefleet-drive-write-cache.rules"
HEADER = (
    "# Written by cachefleet.storage.drive_write_cache, one line per drive, so that the write cache of a drive is what was asked for",
    "# after a reboot and after the drive is plugged in again. Lines are replaced drive by drive: change the inventory, not this file.",
)

#: Properties that name a drive, the one to prefer first. virtio-blk has ID_SERIAL only.
KEY_NAMES = ("ID_SERIAL_SHORT", "ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL")

#: The property that a rule sets which chooses drives by what they are: such a rule is that of no drive.
BY_MATCH = "CACHEFLEET_MATCH"

_KEY_IN_LINE = re.compile(r'ENV\{([A-Z_]+)\}=="([^"]*)"')


@frozen
class RuleKey:
    """One udev property with the value that only this drive of the host has."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def keys_of(properties: t.Mapping[str, str], names: t.Sequence[str] = KEY_NAMES) -> tuple[RuleKey, ...]:
    """Every property of a drive that a line of the file could be keyed on, the preferred one first."""
    return tuple(RuleKey(name, properties[name]) for name in names if properties.get(name))


def choose_key(properties: t.Mapping[str, str], others: t.Iterable[t.Mapping[str, str]], item: str, names: t.Sequence[str] = KEY_NAMES) -> RuleKey:
    """The key for a drive: the first property that can be written into a rule and that no other drive shares.

    :param properties: the udev properties of the drive.
    :param others: the udev properties of every other drive of the host.
    :param names: the properties that may name it, the one to prefer first.
    :raises BadInput: with the reason why no rule can match only this drive.
    """
    others = list(others)
    candidates = keys_of(properties, names)
    if not candidates:
        raise BadInput(f"{item} has no serial number and no WWN that a udev rule could name: set persistent: false for it.", item=item)
    harmless = [key for key in candidates if written.is_harmless_in_rule(key.value)]
    if not harmless:
        raise BadInput(f"{item}: {candidates[0]} holds characters that cannot be written safely into a udev rule: set persistent: false for it.", item=item)
    for key in harmless:
        if not any(other.get(key.name) == key.value for other in others):
            return key
    raise BadInput(
        f"{item}: another drive of this host has the same {' and '.join(str(key) for key in harmless)}, so a boot rule would match both: "
        "write persistent: false for it.",
        item=item,
    )


def rule_line(key: RuleKey, kernel: str, actions: str, effect: str) -> str:
    """One rule.

    :param kernel: pattern for the kernel name, for example ``sd*`` (which matches ``sdaa``, unlike ``[sh]d[a-z]``).
    :param actions: the events that matter, ``add`` or ``add|change``.
    :param effect: the assignment, made by :func:`run_program` or :func:`write_attribute`.
    :raises BadInput: if the value of the key cannot stand in a rule.
    """
    value = written.in_rule(key.value, key.name)
    return f'ACTION=="{actions}", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", KERNEL=="{kernel}", ENV{{{key.name}}}=="{value}", {effect}'


def run_program(program: str, arguments: str, item: str) -> str:
    """The effect that runs a program on the device node.

    :raises BadInput: if the path of the program cannot stand in a rule.
    """
    return f'RUN+="{written.program_in_rule(program, item)} {arguments}"'


def write_attribute(attribute: str, value: str) -> str:
    """The effect that writes a sysfs attribute of the device; ``/*/`` in its path stands for the first directory that has it.

    :raises BadInput: if the value cannot stand in a rule.
    """
    return f'ATTR{{{attribute}}}="{written.assigned_in_rule(value, attribute)}"'


def lines_for(text: str, keys: t.Iterable[RuleKey]) -> tuple[str, ...]:
    """The lines of the file that concern a drive, whichever of its properties they are keyed on."""
    pairs = {(key.name, key.value) for key in keys}
    return tuple(line for line in rules_in(text) if BY_MATCH not in line and set(_KEY_IN_LINE.findall(line)) & pairs)


def with_line(text: str, keys: t.Iterable[RuleKey], line: str | None, header: t.Sequence[str] = HEADER, stale: t.Iterable[str] = ()) -> str:
    """The file with the lines of one drive replaced by ``line``, or taken out, and without those that are ``stale``; every other line stays.

    Empty if no rule is left.
    """
    return with_lines(text, {*stale, *lines_for(text, keys)}, () if line is None else (line,), header)


def with_lines(text: str, gone: t.Container[str], lines: t.Iterable[str], header: t.Sequence[str] = HEADER) -> str:
    """The file without the lines that are ``gone`` and with further ones. Empty if no rule is left."""
    rules = {*(rule for rule in rules_in(text) if rule not in gone), *lines}
    return "\n".join((*header, *sorted(rules))) + "\n" if rules else ""


def rules_in(text: str) -> list[str]:
    """The lines of a file that are rules."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def read_rules(root: Path = Path("/"), file: str = RULES_FILE) -> str:
    """The text of the file; empty if it is not there.

    :raises CommandFailed: if it is there and cannot be read.
    """
    return read_file(root / file)


def write_rules(text: str, root: Path = Path("/"), file: str = RULES_FILE) -> None:
    """Replace the file; take it away when the text is empty.

    :raises CommandFailed: if it cannot be written.
    """
    replace_file(root / file, text)


@frozen
class WriteRule(Operation):
    """Set the udev rule of one device; ``None`` removes it.

    :param stale: further lines that are removed.
    """

    needs_commands = ("udevadm",)
    keys: tuple[RuleKey, ...]
    line: str | None
    file: str = RULES_FILE
    header: t.Sequence[str] = HEADER
    stale: tuple[str, ...] = ()

    def carry_out(self, layer: Layer[t.Any, t.Any], step: Step) -> None:
        text = with_line(read_rules(layer.root, self.file), self.keys, self.line, self.header, self.stale)
        write_rules(text, layer.root, self.file)
        layer.runner.run(["udevadm", "control", "--reload"], item=step.item)
