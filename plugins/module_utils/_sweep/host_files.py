# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes what the collection has put on a host; devices and their present settings are not touched.

What is still needed is refused before anything is removed. What is not in the table is left, and named.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import exchangeable, read_file, require_path, sync_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import RUNNING
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import FILE as MADE_FILES
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import STATUS_FILE
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import ORDER_FILE
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import META, PROGRESS_FILE, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import FILE as LEFT_DEVICES
from ansible_collections.cachefleet.storage.plugins.module_utils._host import host_files

LAYER = "host_files"
SPOOL = f"/{host_files.STATE}/spool"
#: Of no campaign, so that no file counts as its own.
_NO_CAMPAIGN = "removal"
#: Bytes of a file that the difference shows.
_SHOWN = 64 * 1024
#: Files of a campaign in a spool, and a key that each has.
_MARKS = {STATUS_FILE: "boot_id", ORDER_FILE: "order_sha256", PROGRESS_FILE: "variant"}
_RULES, _UNITS = "etc/udev/rules.d/", "etc/systemd/system/"


@frozen
class RemovePath(Operation):
    """Remove a file, a link, or a folder with everything in it.

    :param path: below the root, without a leading slash.
    """

    path: str

    def carry_out(self, layer: HostFilesLayer, step: Step) -> None:
        place = layer.root / self.path
        try:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(str(place))
            elif os.path.lexists(place):
                place.unlink()
            sync_folder(place.parent)
            if place.parent.parent == layer.root / "etc/systemd/network" or place.parent in (layer.root / host_files.STATE, layer.root / layer.spool):
                # A folder that has nothing else in it.
                with contextlib.suppress(OSError):
                    place.parent.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            raise CommandFailed(f"{place} cannot be removed: {error.strerror}.", item=step.item) from None


@frozen
class RemoveMade(Operation):
    """Remove a file that was made for a measurement, or such a folder with the files of fio; no part of its path may be a link."""

    path: str

    def carry_out(self, layer: HostFilesLayer, step: Step) -> None:
        try:
            with folder_of(self.path, layer.root) as (above, name):
                if not stat.S_ISDIR(os.lstat(name, dir_fd=above).st_mode):
                    os.unlink(name, dir_fd=above)
                    return
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
                try:
                    for one in os.listdir(folder):
                        os.unlink(one, dir_fd=folder)
                finally:
                    os.close(folder)
                os.rmdir(name, dir_fd=above)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CommandFailed(f"{self.path} cannot be removed: {error.strerror}.", item=step.item) from None


@frozen
class RunTool(Operation):
    """Have udev or systemd read its files again, where it is there and runs."""

    words: tuple[str, ...]

    def carry_out(self, layer: HostFilesLayer, step: Step) -> None:
        if layer.runner.has(self.words[0]):
            layer.runner.run(self.words, ok=None, item=step.item)


@frozen
class HostFilesState:
    """What was found.

    :param paths: what the table has, below the root.
    :param made: files and folders for measurements that are as fio left them; ``kept``: those that are not.
    :param unknown: what is in folders of the collection and not in the table.
    :param refusals: why nothing may be removed, each a sentence.
    """

    paths: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


class HostFilesLayer(Layer[HostFilesState, str]):
    """What the collection has put on a host; the specification is the spool of measurements, an absolute path."""

    name = LAYER

    @property
    def spool(self) -> str:
        """Below the root."""
        return os.path.normpath(self.spec).lstrip("/")

    def read(self) -> HostFilesState:
        require_path(Path(self.spec), "spool")
        spools = list(dict.fromkeys((self.spool, SPOOL.lstrip("/"))))
        paths = [path for row in host_files.TABLE for path in self._found(row)]
        paths = list(dict.fromkeys([*paths, *self._in_shared_spool(), *self._drafts()]))
        made = {path: one for spool in spools if (self.root / spool).is_dir() for path, one in self._made(spool).items()}
        return HostFilesState(
            tuple(paths),
            tuple(path for path, free in made.items() if free),
            tuple(path for path, free in made.items() if not free),
            tuple(self._unknown(spools)),
            tuple(self._refusals(paths, spools)),
        )

    def plan(self, state: HostFilesState) -> list[Step]:
        if state.refusals:
            raise Refused(f"{' '.join(state.refusals)} Nothing was removed.", item=LAYER, refusals=list(state.refusals))
        for path in state.kept:
            self.warn(f"{path} was made for a measurement and changed since, so that it is left: remove it by hand if it is not needed.")
        for path in state.unknown:
            self.warn(f"/{path} is where this collection keeps files and is none of them, so that it is left: remove it by hand if it is not needed.")
        # Files for measurements first: the spool has the record of them.
        steps = [Step(LAYER, path, "file", "present", None, f"Remove {path}, which was made for measurements", RemoveMade(path)) for path in state.made]
        steps += [Step(LAYER, f"/{path}", "file", self._shown(path), None, f"Remove /{path}", RemovePath(path)) for path in state.paths]
        again = (_RULES, "udev rules", ("udevadm", "control", "--reload")), (_UNITS, "units", ("systemctl", "daemon-reload"))
        for folder, title, words in again:
            if any(path.startswith(folder) for path in state.paths):
                steps.append(Step(LAYER, title, "read", None, "again", f"Have the {title} read again", RunTool(words)))
        return steps

    def _shown(self, path: str) -> str:
        place = self.root / path
        if not path.startswith("etc/") or place.is_symlink() or place.stat().st_size > _SHOWN:
            return "present"
        return read_file(place)

    def _found(self, row: host_files.HostFiles) -> t.Iterator[str]:
        for place in sorted(self.root.glob(row.pattern.rstrip("/"))):
            path = str(place.relative_to(self.root))
            if place.is_dir() == row.pattern.endswith("/") and host_files.row_of(path) is row and not (row.marked and not self._is_ours(place)):
                yield path

    def _is_ours(self, place: Path) -> bool:
        return "cachefleet.storage" in read_file(place)

    def _in_shared_spool(self) -> t.Iterator[str]:
        """What measurements have put into a folder of the user's, which may be used for something else too; an empty one is removed with its last file."""
        folder = self.root / self.spool
        if self.spool == SPOOL.lstrip("/") or not folder.is_dir():
            return
        homes = self._campaigns(folder)
        records = [folder / name for name in (MADE_FILES, LEFT_DEVICES)]
        places = [*homes, *(folder / f"{home.name}.tar" for home in homes), *records, folder / ".lock"]
        for place in places if homes or any(map(Path.exists, records)) else ():
            if place.exists() and not place.is_symlink():
                yield str(place.relative_to(self.root))

    def _campaigns(self, spool: Path) -> list[Path]:
        """The folders of campaigns: each with the status, the order or the progress of a measurement, as those write it."""
        return [one for one in sorted(spool.iterdir()) if one.is_dir() and not one.is_symlink() and self._is_campaign(one)]

    def _is_campaign(self, home: Path) -> bool:
        for name, key in _MARKS.items():
            with contextlib.suppress(NotUnderstood):
                if key in _json(home / name):
                    return True
        return False

    def _drafts(self) -> t.Iterator[str]:
        """What a run that was killed has left of a file it was writing."""
        folders = {row.pattern.rpartition("/")[0] for row in host_files.TABLE if not row.pattern.endswith("/")}
        for folder in sorted(folders):
            for place in sorted(self.root.glob(f"{folder}/.cachefleet-*.tmp")):
                yield str(place.relative_to(self.root))

    def _unknown(self, spools: t.Sequence[str]) -> t.Iterator[str]:
        folder = self.root / host_files.STATE
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            path = str(place.relative_to(self.root))
            if host_files.row_of(path) is None and path not in spools and not place.name.startswith(".cachefleet-"):
                yield path
        shared = self.root / self.spool
        if self.spool != SPOOL.lstrip("/") and shared.is_dir():
            marked = {place.parent for name in _MARKS for place in shared.glob(f"*/{name}")}
            yield from (str(home.relative_to(self.root)) for home in sorted(marked - set(self._campaigns(shared))))

    def _made(self, spool: str) -> dict[str, bool]:
        """The files and folders that were made for measurements and are there, and whether they are as fio left them."""
        files = MadeFiles(Spool(self.root / spool, _NO_CAMPAIGN), self.root)
        free = files.paths()
        return {path: path in free for path in files.recorded() if os.path.lexists(self.root / path.lstrip("/"))}

    # -- what is still needed

    def _refusals(self, paths: t.Sequence[str], spools: t.Sequence[str]) -> t.Iterator[str]:
        for path in paths:
            row = host_files.row_of(path)
            if row is not None and row.needed and self._is_needed(path):
                yield f"/{path} {row.needed}."
        yield from self._running_caches()
        yield from self._running(paths)
        for spool in spools:
            yield from self._measurements(spool)
        yield from self._traces()
        yield from self._purges()
        rollback = self.root / host_files.STATE / "storage_network/journal.json"
        if rollback.exists():
            yield f"{rollback} is of a change of the network that is not confirmed: wait until it is confirmed or put back, at most some minutes."

    def _is_needed(self, path: str) -> bool:
        """An empty folder, or a record without an entry, is needed for nothing."""
        place = self.root / path
        if place.is_dir():
            return any(one.suffix == ".json" for one in place.iterdir())
        return place.suffix != ".json" or read_file(place).strip() not in ("", "{}")

    def _running_caches(self) -> t.Iterator[str]:
        for place in sorted(self.root.glob("sys/block/dm-*/dm/uuid")):
            if read_file(place).startswith("CACHEFLEET-"):
                name = read_file(place.with_name("name")).strip()
                yield f"The device {name} of a cache of dm_cache is in use, and a udev rule hides it: {host_files.REMOVE_CACHE}."

    def _running(self, paths: t.Sequence[str]) -> t.Iterator[str]:
        """Runs that hold a lock."""
        for place in sorted((self.root / host_files.RUN).glob("*.lock")) if host_files.RUN in paths else ():
            with open(place, "rb") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    yield f"Another run is changing {place.stem} on this host: wait for its end."

    def _measurements(self, spool: str) -> t.Iterator[str]:
        folder = self.root / spool
        if not folder.is_dir():
            return
        reason = exchangeable(folder)
        if reason:
            yield f"{reason}."
            return
        for home in self._campaigns(folder) if spool != SPOOL.lstrip("/") else sorted(one for one in folder.iterdir() if one.is_dir()):
            status = _json(home / STATUS_FILE)
            cells = sum(1 for _cell in home.glob(f"*/*/*/{META}"))
            if is_alive(status):
                yield f"The measurement {home.name} runs on this host: wait for its end, or stop it (cachefleet.storage.fio_runner with state: stopped)."
            elif cells:
                yield (
                    f"{home} has {cells} measured cell{'' if cells == 1 else 's'} that {'was' if cells == 1 else 'were'} not collected: collect"
                    f" {'it' if cells == 1 else 'them'} (the playbook benchmark with fio_benchmark_campaign={home.name}), or remove this folder."
                )
        if not Spool(folder, _NO_CAMPAIGN).is_free():
            yield f"A measurement holds the spool {folder} on this host: wait for its end."

    def _traces(self) -> t.Iterator[str]:
        for home in sorted(one for one in (self.root / host_files.STATE / "traces").glob("*") if one.is_dir()):
            if is_alive(_json(home / STATUS_FILE)):
                yield f"The trace {home.name} is being recorded on this host: wait for its end, or stop it (cachefleet.storage.io_trace with state: stopped)."
            elif (home / STATUS_FILE).exists():
                yield f"{home} has a trace that was not fetched: fetch it (the playbook io_trace with io_trace_name={home.name}), or remove this folder."

    def _purges(self) -> t.Iterator[str]:
        for place in sorted((self.root / host_files.STATE / "purges").glob("*.json")):
            record = _json(place)
            if record.get("state") == RUNNING:
                yield f"{place} is of a purge of {record.get('device')} that runs or was interrupted: purge the drive again, which unlocks it."


def _json(path: Path) -> dict[str, t.Any]:
    """:raises StorageError: if a file is there and is not what the collection writes: nothing is removed by guesses."""
    value = json_text.read_json(path, json_text.FIO)
    return value if isinstance(value, dict) else {}
