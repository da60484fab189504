# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record the I/O of a host, and fetch a finished trace: verified before the copy on the host is removed."""

from __future__ import annotations

import shutil
import tempfile
import typing as t
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.utils.vars import merge_hash

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.control import FOLDER
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.format import REQUESTS_FILE, TRACE_FILE
from ansible_collections.cachefleet.storage.plugins.modules.io_trace import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import DamagedArchive, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, file_sha256, is_sha256, require_space, sync_folder
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_fetch import fetch

_MODULE = "cachefleet.storage.io_trace"
#: The files of a trace, and the bytes that each may have.
_LARGEST = {TRACE_FILE: json_text.FIO.size, REQUESTS_FILE: GIB}


class ActionModule(StorageAction):
    """See the documentation of ``cachefleet.storage.io_trace``."""

    _supports_check_mode = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _checked, options = self.validate_argument_spec(argument_spec=argument_spec())
        arguments = {name: value for name, value in self._task.args.items() if name != "results"}
        try:
            place = self._place(options)
            if options["state"] == "fetched":
                if place is None:
                    raise BadInput("results must be set to fetch a trace: the folder of traces on the controller.", item="results")
                return merge_hash(result, self._fetch(arguments, place, task_vars))
            if options["state"] == "started" and options["devices"] and place is not None and place.exists():
                raise ResultsError(f"{place} has a trace of that name already: use another name, or move it away.", item=options["name"])
        except StorageError as error:
            return {**result, "failed": True, "changed": False, **error.to_dict()}
        return merge_hash(result, self.answer_of(_MODULE, arguments, task_vars))

    def _place(self, options: t.Mapping[str, t.Any]) -> Path | None:
        """The folder of the trace on the controller, if there is one."""
        name, host = component(options["name"], "trace"), component(self._host, "host")
        return Path(options["results"]).absolute() / name / host if options["results"] else None

    def _fetch(self, arguments: dict[str, t.Any], place: Path, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        """:raises StorageError: if the trace could not be fetched; it is still on the host then."""
        answer = self.answer_of(_MODULE, {**arguments, "state": "packed"}, task_vars)
        if answer.get("failed") or answer.get("unreachable"):
            return answer
        if self._task.check_mode:
            return {**answer, "changed": True, "path": str(place)}
        files = self._announced(answer.pop("files", None))
        if self._is_stored(place, files):
            changed = False
        else:
            self._receive(arguments["name"], files, place)
            changed = True
        removed = self.answer_of(_MODULE, {**arguments, "state": "absent"}, task_vars)
        if removed.get("failed"):
            self._display.warning(f"{self._host}: the trace is in {place} and could not be removed from the host: {plain(removed.get('msg'), 300)}")
        return {**answer, "changed": changed or bool(removed.get("changed")), "path": str(place)}

    def _announced(self, files: t.Any) -> dict[str, tuple[int, str]]:
        """The size and hash of each file, as reported by a host, validated."""
        if files == {}:
            raise ResultsError("There is no trace of that name on this host: it was never started, or has been fetched already.", item=self._host)
        found = {}
        for name, largest in _LARGEST.items():
            entry = files.get(name) if isinstance(files, dict) else None
            size, sha256 = (entry.get("size"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= largest or not is_sha256(sha256):
                raise DamagedArchive(
                    f"Host {self._host} gives '{plain(entry, 80)}' for {name} of its trace, and not a size up to {format_size(largest)} and a hash:"
                    " nothing was fetched.",
                    item=self._host,
                )
            found[name] = size, str(sha256)
        return found

    def _is_stored(self, place: Path, files: t.Mapping[str, tuple[int, str]]) -> bool:
        """Whether the very same trace was fetched before.

        :raises ResultsError: if another one is there.
        """
        if not place.exists():
            return False
        if all((place / name).is_file() and file_sha256(place / name) == sha256 for name, (_size, sha256) in files.items()):
            return True
        raise ResultsError(
            f"{place} has another trace of that name: it was kept, and the new one is still on the host. Move the old one away.", item=self._host
        )

    def _receive(self, name: str, files: t.Mapping[str, tuple[int, str]], place: Path) -> None:
        above = place.parent
        with explained(above, f"fetching the trace of host {self._host}"):
            above.mkdir(parents=True, exist_ok=True)
            require_space(above, sum(size for size, _sha256 in files.values()), f"fetching the trace of host {self._host}")
            draft = Path(tempfile.mkdtemp(prefix=f".fetch.{self._host}.", dir=above))
            try:
                for file, (size, sha256) in files.items():
                    local = draft / file
                    local.touch()
                    self._copy(f"{FOLDER}/{name}/{file}", local, size)
                    if file_sha256(local) != sha256:
                        raise DamagedArchive(f"{file} of host {self._host} arrived damaged: run again, it is still on the host.", item=self._host)
                draft.chmod(0o755)
                sync_folder(draft)
                draft.rename(place)
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    def _copy(self, source: str, local: Path, size: int) -> None:
        try:
            fetch(self._connection, source, local, size, self._host)
        except (AnsibleConnectionFailure, StorageError):
            raise
        except AnsibleError as error:
            raise ResultsError(
                f"{source} of host {self._host} could not be fetched: {plain(error, 300)}. The trace is still on the host; run again.", item=self._host
            ) from None
