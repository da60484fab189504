# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd units that bring a cache up at boot, before anything is mounted, and take it down after everything is unmounted.

A boot waits 90 s for a device (DefaultDeviceTimeoutSec). One that comes later starts the unit if its device unit wants it too.

Sources: systemd.unit(5), systemd.service(5) "COMMAND LINES", systemd.device(5), systemd.special(7) (local-fs-pre.target), systemd-escape(1).
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import config_values as written
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file, sync_folder

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

FOLDER = "etc/systemd/system"
#: Everything on the way to mounted file systems waits for it.
_WANTED_BY = "sysinit.target"
_INSTALL = "WantedBy="
_NOTE = "# Note: "
_PLUS = "\\x2b"
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def unit_name(layer: str, item: str) -> str:
    """The unit of one cache: ``cachefleet-<layer>-<item>.service``; ``item`` is a name that :func:`spec.read_common` accepted.

    :raises BadInput: if it could not stand in the name of a unit.
    """
    return _unit_name(layer, written.in_unit_name(item))


def _unit_name(layer: str, item: str) -> str:
    # systemd takes no plus sign in a name (systemd.unit(5)).
    return f"cachefleet-{layer}-{item.replace('+', _PLUS)}.service"


def device_unit(path: str) -> str:
    """The unit that systemd has for a device: ``dev-disk-by\\x2did-X.device`` for ``/dev/disk/by-id/X``."""
    words = [word for word in path.split("/") if word]
    escaped = []
    for word in words:
        text = "".join(char if re.match(r"[A-Za-z0-9:_.]", char) else "".join(f"\\x{byte:02x}" for byte in char.encode()) for char in word)
        escaped.append("\\x2e" + text[1:] if text.startswith(".") and not escaped else text)
    return "-".join(escaped) + ".device"


def command_line(argv: t.Sequence[str], item: str) -> str:
    """An argument list as ``ExecStart=`` takes it; the first word is an absolute path.

    :raises BadInput: if a word has a line break or another control character.
    """
    return " ".join(_quoted(str(word), item) for word in argv)


def _quoted(word: str, item: str) -> str:
    text = written.word_of_unit(word, item).replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def render(
    description: str,
    devices: t.Sequence[str],
    start: t.Sequence[t.Sequence[str]],
    stop: t.Sequence[t.Sequence[str]] = (),
    *,
    clear: t.Sequence[t.Sequence[str]] = (),
    check: t.Sequence[t.Sequence[str]] = (),
    after: t.Sequence[str] = (),
    absent: str = "",
    note: str = "",
    late: bool = False,
    item: str,
) -> str:
    """The text of a unit.

    :param devices: paths that must be there before it starts, each named so that it is the same device after every boot.
    :param start: the commands that bring the cache up, in order; the unit fails with the first of them that fails.
    :param stop: the commands that take it down, after everything was unmounted.
    :param clear: commands after a stop, and after a start that failed: what half a start has left.
    :param check: commands before ``start``; one that fails keeps the cache down. With a hyphen before its path it may fail (systemd.service(5)).
    :param after: further units to wait for.
    :param absent: a path; where it is there already, the unit has nothing to do and does nothing.
    :param note: one line that systemd passes over, found again by :func:`note_of`.
    :param late: whether a device that comes after the boot has given up waiting for it brings the cache up. Not if the origin may be used without the cache
        by then, and what an earlier time left in it would be read.
    :raises BadInput: if something of it could not stand in a unit.
    """
    needed = [device_unit(written.word_of_unit(path, item)) for path in devices]
    waits = [*needed, *after]
    lines = [
        f"# Written by cachefleet.storage for the cache {written.word_of_unit(item, item)}: change the inventory, not this file.",
        f"{_NOTE}{written.word_of_unit(note, item)}" if note else "",
        "[Unit]",
        f"Description={written.in_unit(description, item)}",
        "DefaultDependencies=no",
        f"ConditionPathExists=!{written.in_unit(absent, item)}" if absent else "",
        f"Requires={' '.join(needed)}" if needed else "",
        f"After={' '.join(waits)}" if waits else "",
        "Wants=local-fs-pre.target",
        "Before=local-fs-pre.target shutdown.target",
        "Conflicts=shutdown.target",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        # Loading a large cache after a crash, and flushing one, take as long as they take.
        "TimeoutSec=infinity",
        *(f"ExecStartPre={command_line(argv, item)}" for argv in check),
        *(f"ExecStart={command_line(argv, item)}" for argv in start),
        *(f"ExecStop={command_line(argv, item)}" for argv in stop),
        *(f"ExecStopPost={command_line(argv, item)}" for argv in clear),
        "",
        "[Install]",
        _INSTALL + " ".join([*(needed if late else ()), _WANTED_BY]),
    ]
    # A line that does not apply is left out; the one blank line before a section stays.
    return "\n".join(line for place, line in enumerate(lines) if line or lines[place + 1].startswith("[")) + "\n"


def note_of(text: str) -> str:
    """The note in the text of a unit; empty if it has none."""
    return next((line[len(_NOTE) :] for line in text.splitlines() if line.startswith(_NOTE)), "")


def read_unit(name: str, root: Path = Path("/")) -> str:
    """The text of a unit; empty if it is not there or not enabled, so that a run that was killed between the two is repeated."""
    text = stored_unit(name, root)
    return text if all(link.is_symlink() for link in _links(name, text, root)) else ""


def stored_unit(name: str, root: Path = Path("/")) -> str:
    """The text of a unit, enabled or not; empty if it is not there."""
    return read_file(root / FOLDER / name)


def unit_items(layer: str, root: Path = Path("/")) -> list[str]:
    """The items of a layer that have a unit on this host."""
    beginning, end = _unit_name(layer, "\0").split("\0")
    names = [path.name[len(beginning) : -len(end)].replace(_PLUS, "+") for path in (root / FOLDER).glob(f"{beginning}*{end}")]
    return sorted(name for name in names if written.is_unit_item(name))


def write_unit(runner: Runner, name: str, text: str, root: Path = Path("/")) -> None:
    """Write and enable a unit, or with an empty text disable it and take it away. It is neither started nor stopped.

    When it returns, a power cut undoes it no more: a cache that writes back must not be missing at the next boot.

    :raises CommandFailed: if that is not possible.
    """
    path = root / FOLDER / name
    needed, present = _links(name, text, root), {link for link in (root / FOLDER).glob("*.wants/*") if link.name == name and link.is_symlink()}
    if text:
        replace_file(path, text)
        for link in present.difference(needed):
            # Of a device that the cache no longer has.
            if link.parent.name.endswith(".device.wants"):
                replace_file(link, "")
        # To enable a unit is also to load it. It is not disabled before: a boot between the two would be one without the cache.
        if present.issuperset(needed):
            runner.run(["systemctl", "daemon-reload"], item=name)
        else:
            runner.run(["systemctl", "enable", name], item=name)
        for link in needed:
            _keep_entries(link)
        return
    if path.exists() or present:
        runner.run(["systemctl", "disable", name], ok=None, item=name)
        for link in present:
            replace_file(link, "")
        replace_file(path, "")
        runner.run(["systemctl", "daemon-reload"], item=name)


def _keep_entries(link: Path) -> None:
    """Have what systemctl made of a link survive a power cut.

    :raises CommandFailed: if that is not possible.
    """
    try:
        if link.parent.is_dir():
            sync_folder(link.parent)
            sync_folder(link.parent.parent)
    except OSError as error:
        raise CommandFailed(f"{link} cannot be written: {error.strerror}.", item=str(link)) from None


def _links(name: str, text: str, root: Path) -> list[Path]:
    """The links that enable a unit, by its text."""
    lines = [line[len(_INSTALL) :] for line in text.splitlines() if line.startswith(_INSTALL)]
    return [root / FOLDER / f"{unit}.wants" / name for unit in " ".join(lines or [_WANTED_BY]).split()]


def mark_started(runner: Runner, name: str) -> None:
    """Report to systemd that the cache is up, so that it is taken down at shutdown: start the unit, whose commands find it done.

    For units whose start commands do nothing when the cache is there already.

    :raises CommandFailed: if the unit fails.
    """
    runner.run(["systemctl", "start", name], item=name)


def start_again(runner: Runner, name: str) -> None:
    """Have the commands of a unit carried out, also if systemd takes the cache for up.

    It does so of a cache that was taken down by others, with dmsetup for example, and of one that was made anew under a name that
    was started before: to start such a unit does nothing, and succeeds.

    :raises CommandFailed: if the unit fails.
    """
    runner.run(["systemctl", "restart", name], item=name)
