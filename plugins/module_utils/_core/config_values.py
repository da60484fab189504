# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that drives, sysfs, LVM and users report, before they are written into files that other programs interpret.

One function for each format; every writer passes its values through it last, whatever was checked before. What has a meaning in
a format is refused and not escaped, except in systemd units, which have an escape for everything but control characters.

Sources: udev(7) (values are shell patterns; ``$`` and ``%`` begin substitutions; a line has 16 KiB); systemd.syntax(7) (a backslash at
the end continues a line; UTF-8); systemd.unit(5) (characters of a unit name); interfaces(5) and vblade-persistence(5) (read by a shell).
"""

from __future__ import annotations

import re

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

#: Longer than any serial, path or name of the kernel; the limits of the formats are not reached with it.
_LONGEST = 1024
#: NAME_MAX is 255, of which the unit needs some for itself.
_LONGEST_UNIT_ITEM = 200
_RULE = re.compile(r"[0-9A-Za-z_.:+=@,/-]+")
#: In a value that a rule assigns, patterns mean nothing, and blanks are a part of it: "write back, no read (daft)".
_ASSIGNED = re.compile(r"[0-9A-Za-z_.:+=@,/() -]+")
_PROGRAM = re.compile(r"/[0-9A-Za-z_.+/-]+")
_SHELL = re.compile(r"[0-9A-Za-z_.:+=@,%/ -]*")
_UNIT_ITEM = re.compile(r"[0-9A-Za-z_.+-]+")
_INTERFACE = re.compile(r"[0-9A-Za-z_.:@-]{1,15}")


def is_harmless_in_rule(value: str) -> bool:
    """Whether a value means itself in a udev rule."""
    return len(value) <= _LONGEST and _RULE.fullmatch(value) is not None


def in_rule(value: str, item: str) -> str:
    """A value of a udev rule.

    :raises BadInput: if it has characters with a meaning there.
    """
    return _checked(value, item, "udev rule", harmless=is_harmless_in_rule(value))


def assigned_in_rule(value: str, item: str) -> str:
    """A value that a udev rule assigns to an attribute.

    :raises BadInput: if it has characters with a meaning there.
    """
    return _checked(value, item, "udev rule", harmless=len(value) <= _LONGEST and _ASSIGNED.fullmatch(value) is not None)


def program_in_rule(path: str, item: str) -> str:
    """The path of a program that a udev rule runs.

    :raises BadInput: if it has characters with a meaning there.
    """
    if len(path) > _LONGEST or _PROGRAM.fullmatch(path) is None:
        raise BadInput(f"{item}: the path {path[:80]!r} cannot be written into a udev rule: install the tool in a standard directory.", item=item)
    return path


def in_unit(text: str, item: str) -> str:
    """Text of a systemd unit outside of a quoted word, with specifiers escaped.

    :raises BadInput: if it has control characters, is not Unicode, or ends with a backslash.
    """
    printable = word_of_unit(text, item)
    return _checked(printable, item, "systemd unit", harmless=not text.endswith("\\")).replace("%", "%%")


def word_of_unit(text: str, item: str) -> str:
    """A word of a command in a systemd unit, which is quoted afterwards.

    :raises BadInput: if it has control characters or is not Unicode.
    """
    # Line and paragraph separators of Unicode count as line ends for str.splitlines(), which reads the unit again.
    harmless = not any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029" or 0xD800 <= ord(char) < 0xE000 for char in text)
    return _checked(text, item, "systemd unit", harmless=harmless)


def is_unit_item(name: str) -> bool:
    """Whether a name can be a part of a unit's name."""
    return len(name) <= _LONGEST_UNIT_ITEM and _UNIT_ITEM.fullmatch(name) is not None


def in_unit_name(name: str) -> str:
    """The part of a unit's name that is not ours; it is also the name of a file.

    :raises BadInput: if it has other characters than systemd takes, or is too long.
    """
    return _checked(name, name[:80], "name of a systemd unit", harmless=is_unit_item(name))


def in_shell_variable(value: str, item: str) -> str:
    """A value in a file of variables that systemd and a shell read; blanks are allowed, so it may have to stand in quotes.

    :raises BadInput: if it has characters with a meaning there.
    """
    return _checked(value, item, "file of variables", harmless=len(value) <= _LONGEST and _SHELL.fullmatch(value) is not None)


def interface_name(name: str) -> str:
    """The name of a network interface in a command line that a shell reads. The kernel takes nearly every character.

    :raises BadInput: if it has characters with a meaning there.
    """
    return _checked(name, name[:80], "network configuration", harmless=_INTERFACE.fullmatch(name) is not None)


def _checked(value: str, item: str, place: str, *, harmless: bool) -> str:
    if harmless:
        return value
    raise BadInput(f"{item}: {value[:80]!r} cannot be written into a {place}: it has characters that have a meaning there, or is too long.", item=item)
