# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How an EnhanceIO cache comes back at boot: a unit of systemd, and for write-back a udev rule that hides its origin until it is there.

eio_cli writes a udev rule of its own, ``94-enhanceio-NAME.rules``, which enables the cache when both devices have appeared. It
hides the origin by ``NAME=""``, which udev has ignored since there is devtmpfs, so that a file system is checked and mounted
without the newest blocks: a known way to lose it (Documents/Persistence.txt; CLI/eio_cli). That rule is taken away.

Sources: systemd.device(5) (``SYSTEMD_READY=0``: for systemd the device is not there), udev(7), udevadm(8), CLI/eio_cli
(``enable`` ends with 0 whatever happened), eio_conf.c (a cache that was not shut down cleanly begins empty but for what is
dirty, and one with dirty blocks is loaded in write-back only).
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import FAST_REMOVE, MODE_WORDS
from ansible_collections.cachefleet.storage.plugins.module_utils._core import config_values as written
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

LAYER = "enhanceio"
#: After 60-persistent-storage.rules, which makes the links, and before MD (64) and LVM (69) read what is on a device.
RULE = "etc/udev/rules.d/62-cachefleet-enhanceio-{name}.rules"
#: What eio_cli writes.
FOREIGN_RULE = "etc/udev/rules.d/94-enhanceio-{name}.rules"
#: Set on a hidden origin, so that it can be found again.
PROPERTY = "CACHEFLEET_ENHANCEIO"
TOOLS = ("modprobe", "eio_cli", "test", "sysctl", "udevadm", "systemctl")
#: Written to ``control``: no metadata is written when the cache is taken down. One that stays so loses what is dirty when it
#: is changed or deleted, so it is set only for the moment before a cache that has nothing dirty is taken down and started again.
FAST_REMOVE_ON = 6
#: sysctl(8) of procps 3.3.17 (Debian 11 and 12) ends with 0 also if the kernel refuses a value: what counts is what is read afterwards.
SET = 'found=$("$1" -w "$2" >/dev/null; "$1" -n "${2%%=*}"); [ "$found" = "${2#*=}" ] || { echo "$2 is not in effect: it is $found" >&2; exit 1; }'
#: ``control`` is a command: its effect is the flag. A cache that would keep its contents is taken down: it writes through, and its blocks may be older than
#: what was written to its origin while it was away.
FORGET = (
    'flags=0; "$1" -w "$2" >/dev/null; while read -r key value; do [ "$key" != flags ] || flags=$value; done <"$3";'
    f' [ $((flags & {FAST_REMOVE})) -ne 0 ] || {{ "$4" disable -c "$5"; echo "$5 would keep its contents: $2 is not in effect" >&2; exit 1; }}'
)
_ENABLE = re.compile(r" enable ((?:-[a-z] \S+ ?)+)")
_OPTION = re.compile(r"-([a-z]) (\S+)")
#: As :func:`sysctl` writes it; ``control`` is no setting.
_SETTING = re.compile(r"dev\.enhanceio\.\w+\.(?!control=)(\w+)=")


@frozen
class AtBoot:
    """The files that bring one cache back.

    :param unit: text of the unit, empty if there is none.
    :param rule: text of the rule that hides the origin, empty if there is none.
    :param foreign: whether eio_cli's rule is there.
    """

    unit: str = ""
    rule: str = ""
    foreign: bool = False

    @property
    def start(self) -> dict[str, str]:
        """The options by which the unit starts the cache, by their letters; empty if there is no unit."""
        match = _ENABLE.search(self.unit)
        return dict(_OPTION.findall(match.group(1))) if match else {}

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that the unit makes, in its order."""
        return tuple(_SETTING.findall(self.unit))

    @property
    def fast(self) -> str:
        """The path of the cache device that the unit starts the cache on; empty if there is no unit."""
        return self.start.get("s", "")


def unit_name(name: str) -> str:
    """The unit of a cache."""
    return boot_unit.unit_name(LAYER, name)


def read_units(root: Path = Path("/")) -> dict[str, str]:
    """The text of the unit of every cache of ours that should run, by the name of the cache."""
    texts = {name: boot_unit.read_unit(unit_name(name), root) for name in boot_unit.unit_items(LAYER, root)}
    return {name: text for name, text in texts.items() if text}


def sysctl(name: str, key: str, value: int) -> str:
    """What ``sysctl -w`` takes; names of caches have no dots."""
    return f"dev.enhanceio.{name}.{key}={value}"


def needed_files(
    name: str, origin: str, fast: str, mode: str, policy: str, block_size: int, settings: t.Mapping[str, int], tools: t.Mapping[str, str], module: str
) -> AtBoot:
    """The files for a cache that is as described. All paths stay the same after every boot.

    :param settings: what is set anew at every boot.
    :param tools: absolute paths of :data:`TOOLS`.
    :param module: the kernel module.
    :raises BadInput: if a word cannot stand in a unit.
    """
    hides = mode == "writeback"
    enable = [tools["eio_cli"], "enable", "-d", origin, "-s", fast, "-m", MODE_WORDS[mode], "-p", policy, "-b", str(block_size), "-c", name]
    start: list[list[str]] = [[tools["modprobe"], module], enable]
    if not hides:
        # Nothing records what was written to the origin while the cache was away: it is stopped silently and begins empty.
        control = [tools["sysctl"], sysctl(name, "control", FAST_REMOVE_ON), f"/proc/enhanceio/{name}/config", tools["eio_cli"], name]
        start += [["/bin/sh", "-c", FORGET, "forget", *control], [tools["eio_cli"], "disable", "-c", name], enable]
    start.append([tools["test"], "-d", f"/proc/enhanceio/{name}"])
    if hides:
        start.append([tools["udevadm"], "trigger", "--action=change", "--subsystem-match=block", f"--property-match={PROPERTY}={name}"])
    # Last, as a setting that cannot be made must not keep the file systems on the cache from being mounted.
    start += [["/bin/sh", "-c", SET, "set", tools["sysctl"], sysctl(name, key, value)] for key, value in settings.items()]
    unit = boot_unit.render(
        f"EnhanceIO cache {name} of {origin}",
        # A hidden origin is none of systemd's devices: it is waited for in another way, and calls the unit when it comes late.
        [fast] if hides else [origin, fast],
        start,
        check=[[tools["udevadm"], "settle", f"--exit-if-exists={origin}"], [tools["test"], "-b", origin]] if hides else [],
        late=hides,
        item=name,
    )
    return AtBoot(unit, _rule(name, origin, tools["systemctl"]) if hides else "")


def _rule(name: str, origin: str, systemctl: str) -> str:
    """Until the cache is there, systemd, MD and LVM see no device and nothing on it.

    :raises BadInput: if the path of the origin has characters that mean something to udev.
    """
    link = written.in_rule(origin, name)[len("/dev/") :]
    program = written.program_in_rule(systemctl, name)
    absent = f'ACTION!="remove", SUBSYSTEM=="block", TEST!="/proc/enhanceio/{name}"'
    hidden = f'ENV{{{PROPERTY}}}="{name}", ENV{{SYSTEMD_READY}}="0", ENV{{ID_FS_TYPE}}="enhanceio_origin"'
    lines = (
        f"# Written by cachefleet.storage for the cache {name}: what is on {origin} is incomplete without its write-back cache.",
        f'{absent}, SYMLINK=="{link}|{link}-part*", {hidden}',
        f'{absent}, SYMLINK=="{link}", RUN+="{program} --no-block start {unit_name(name)}"',
    )
    return "\n".join(lines) + "\n"
