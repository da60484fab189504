# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services that set queues and drive write caches by themselves after udev has, so that a rule of udev is not the last word.

Sources: tuned-profiles(7), tuned.conf(5) and the plugins disk, sysfs and script of tuned (profiles include each other; sections of one name are
merged key by key; a section is of the type of its name unless it has ``type=``; ``devices=`` is a list of patterns, with ``!`` for all but these);
saptune(8), saptune-note(5) (section ``block``, files below ``override`` go first); udisks(8) (``/etc/udisks2/ID.conf``, ``WriteCacheEnabled`` in the
group ``ATA``, where ID is made of model and serial number); smartd.conf(5) (``-e wcache,on|off``).
"""

from __future__ import annotations

import fnmatch
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

WRITE_CACHE = "write_cache"
#: What the disk plugin of tuned and the notes of saptune call settings of queues.
_TUNED_OPTIONS = {"elevator": "scheduler", "readahead": "read_ahead_kb"}
_SAPTUNE_OPTIONS = {"IO_SCHEDULER": "scheduler", "NRREQ": "nr_requests", "READ_AHEAD_KB": "read_ahead_kb", "MAX_SECTORS_KB": "max_sectors_kb"}
_TUNED_FOLDERS = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
_SAPTUNE_UNIT = "etc/systemd/system/multi-user.target.wants/saptune.service"
_NAME = re.compile(r"^[A-Za-z0-9_.-]+\Z")
_QUEUE_FILE = re.compile(r"^/sys/(?:block|class/block)/([^/]+)/queue/(\w+)$")
_HDPARM = re.compile(r"^[^#\n]*\bhdparm\b[^#\n]*\s-W\s?([01])\b", re.MULTILINE)
_SMARTD = re.compile(r"^\s*(DEVICESCAN|DEFAULT|/\S+)[^#\n]*\s-e\s+wcache,(on|off)\b", re.MULTILINE)
_NOT_ALPHANUMERIC = re.compile(r"[^0-9A-Za-z]")


@frozen
class Override:
    """One setting that a service makes.

    :param setting: as the roles call it.
    :param value: as the service writes it; of a write cache ``enabled`` or ``disabled``.
    :param who: the service, ``line`` what to remove.
    :param devices: patterns of kernel names or paths that it is for, with ``!`` for those that it is not; empty if that is not known.
    :param drive: letters and digits that contain the serial number of the only drive that it is for; empty if it is not for one drive.
    """

    setting: str
    value: str
    who: str
    line: str
    devices: tuple[str, ...] = ()
    drive: str = ""

    def concerns(self, name: str, serials: t.Iterable[str] = (), paths: t.Iterable[str] = ()) -> bool:
        """Whether it may be for a device; what is not known to be for others may."""
        if self.drive:
            return any(len(_bare(one)) > 3 and _bare(one) in self.drive for one in serials)
        names = (name, f"/dev/{name}", *paths)
        refused = [one[1:] for one in self.devices if one.startswith("!")]
        chosen = [one for one in self.devices if not one.startswith("!")]
        if any(fnmatch.fnmatch(one, pattern) for pattern in refused for one in names):
            return False
        return not chosen or any(fnmatch.fnmatch(one, pattern) for pattern in chosen for one in names)

    def sentence(self, item: str, wanted: str) -> str:
        """The warning about it."""
        return (
            f"{self.who} sets {self.setting} of {item} when it starts, after udev has: remove {self.line}, or a boot may leave another {self.setting} than the"
            f" requested one ({wanted})."
        )


def read_overrides(root: Path = Path("/")) -> tuple[Override, ...]:
    """What services of this host set; from files alone."""
    return (*_tuned(root), *_saptune(root), *_udisks(root), *_smartd(root))


# -- tuned


def _tuned(root: Path) -> t.Iterator[Override]:
    if not (root / "run/tuned/tuned.pid").exists():
        return
    sections: dict[str, dict[str, tuple[str, str]]] = {}
    for profile in f"{read_file(root / 'etc/tuned/active_profile')} {read_file(root / 'etc/tuned/post_loaded_profile')}".split():
        _read_profile(profile, root, sections, set())
    for name, keys in sections.items():
        kind = keys.get("type", (name, ""))[0]
        if keys.get("enabled", ("1", ""))[0].lower() in ("0", "false", "n", "no"):
            continue
        # A udev_regex chooses by properties: it may be any device.
        devices = tuple(re.split(r"[,;\s]+", keys["devices"][0])) if "devices" in keys else ()
        for key, (value, profile) in keys.items():
            line = f"{key}={value} of its profile {profile}"
            place = _QUEUE_FILE.match(key)
            if kind == "disk" and key in _TUNED_OPTIONS:
                yield Override(_TUNED_OPTIONS[key], value, "tuned", line, () if devices == ("*",) else devices)
            elif kind == "sysfs" and place is not None:
                yield Override(place.group(2), value, "tuned", line, (place.group(1),))
            elif kind == "script" and key == "script":
                yield from _script(value, profile, root)


def _script(value: str, profile: str, root: Path) -> t.Iterator[Override]:
    name = value.rpartition("/")[2]
    for folder in _TUNED_FOLDERS:
        found = _HDPARM.search(read_file(root / folder / profile / name)) if _NAME.match(name) else None
        if found is not None:
            line = f"hdparm -W{found.group(1)} in {name} of its profile {profile}"
            yield Override(WRITE_CACHE, "enabled" if found.group(1) == "1" else "disabled", "tuned", line)
            return


def _read_profile(profile: str, root: Path, sections: dict[str, dict[str, tuple[str, str]]], seen: set[str]) -> None:
    if profile in seen or not _NAME.match(profile):
        return
    seen.add(profile)
    text = next((text for folder in _TUNED_FOLDERS for text in [read_file(root / folder / profile / "tuned.conf")] if text), "")
    own = list(_keys(text))
    for section, key, value in own:
        if section == "main" and key == "include":
            for name in value.replace(",", " ").split():
                # A profile that may be missing: ?name (tuned.conf(5)).
                _read_profile(name.lstrip("?-"), root, sections, seen)
    for section, key, value in own:
        if section != "main":
            sections.setdefault(section, {})[key] = (value, profile)


def _keys(text: str) -> t.Iterator[tuple[str, str, str]]:
    section = ""
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        key, separator, value = (part.strip() for part in line.partition("="))
        if separator and not line.startswith(("#", ";")):
            yield section, key, value


# -- others


def _saptune(root: Path) -> t.Iterator[Override]:
    if not (root / _SAPTUNE_UNIT).is_symlink():
        return
    settings = {key: value.strip("\"' ") for _section, key, value in _keys(read_file(root / "etc/sysconfig/saptune"))}
    for note in (settings.get("NOTE_APPLY_ORDER") or settings.get("TUNE_FOR_NOTES") or "").split():
        if not _NAME.match(note):
            continue
        found: dict[str, tuple[str, str]] = {}
        for place in (
            f"usr/share/saptune/notes/{note}",
            f"var/lib/saptune/working/notes/{note}",
            f"etc/saptune/extra/{note}.conf",
            f"etc/saptune/override/{note}",
        ):
            found.update({key: (value, place) for section, key, value in _keys(read_file(root / place)) if section.partition(":")[0] == "block"})
        for key, (value, place) in found.items():
            # An empty value in an override is one that saptune leaves alone.
            if key in _SAPTUNE_OPTIONS and value:
                yield Override(_SAPTUNE_OPTIONS[key], value, "saptune", f"{key}={value} of note {note} (/{place})")


def _udisks(root: Path) -> t.Iterator[Override]:
    for place in sorted((root / "etc/udisks2").glob("*.conf")):
        for section, key, value in _keys(read_file(place)):
            word = {"true": "enabled", "false": "disabled", "1": "enabled", "0": "disabled"}.get(value.lower())
            if section == "ATA" and key == "WriteCacheEnabled" and word is not None:
                yield Override(WRITE_CACHE, word, "udisks2", f"{key}={value} from /etc/udisks2/{place.name}", drive=_bare(place.stem) or "-")


def _smartd(root: Path) -> t.Iterator[Override]:
    for file in ("etc/smartd.conf", "etc/smartmontools/smartd.conf"):
        for match in _SMARTD.finditer(read_file(root / file)):
            device, word = match.groups()
            line = f"-e wcache,{word} from the line of {device} in /{file}"
            yield Override(WRITE_CACHE, "enabled" if word == "on" else "disabled", "smartd", line, (device,) if device.startswith("/") else ())


def _bare(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text)
