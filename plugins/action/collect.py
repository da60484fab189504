# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Collect the results of a host on the controller, verify them, and only then delete the copy on the host."""

from __future__ import annotations

import posixpath
import re
import shlex
import typing as t
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.modules.collect import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.archive import LARGEST_ARCHIVE, Received, receive
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import STATES, DamagedArchive, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import file_sha256, new_file, require_space
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_fetch import fetch
from ansible_collections.cachefleet.storage.plugins.plugin_utils._raw_shell import RawShell

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_HOST_PATH = re.compile(r"/[A-Za-z0-9._/-]+\Z")


#: Rejected cells that a message names.
_NAMED = 3


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        host = component(self._host, "host")
        campaign = Path(options["path"]).absolute()
        result: dict[str, t.Any] = {"changed": False, "path": str(campaign / host), "stored": [], "replaced": [], "unchanged": [], "states": {}}
        nothing = not any(options["archive"].values())
        if nothing and self._task.check_mode:
            # Where nothing is measured there is no archive yet; a real run would bring one.
            self._display.display(f"{host}: would collect its results into {campaign / host}")
            return {**result, "changed": True}
        if nothing:
            self._display.display(f"{host}: there is nothing to collect.")
            return result
        archive = _Archive(options["archive"], options["spool"], campaign.name, host)
        if self._task.check_mode:
            self._display.display(f"{host}: would collect {format_size(archive.size)} into {campaign / host}")
            return {**result, "changed": True}
        received = self._receive(archive, campaign, host, options["replace"])
        for name in ("stored", "replaced", "unchanged"):
            result[name] = [str(key) for key in getattr(received, name)]
        result.update(changed=received.changed, states=dict(received.states))
        result["changed"] |= store.note_rejected(campaign, host, received.rejected, received.accepted)
        if received.rejected:
            raise self._rejected(received, host, options["spool"], result)
        if received.refused:
            if received.unexplained:
                count, example = len(received.unexplained), received.unexplained[0]
                raise ResultsError(
                    f"{count} cells of host {host} have an ok result in {campaign} that an earlier version of the collection made ({example}) and that"
                    " does not record what exactly was measured, so they were measured again: the old result was kept, and the new one waits on the host in"
                    f" {options['spool']}. Set fio_benchmark_replace to true and run again to take the new ones, or name another campaign to have both.",
                    item=host,
                    **result,
                )
            raise ResultsError(
                f"{len(received.refused)} cells of host {host} have another ok result in {campaign} already ({received.refused[0]}): it was kept, "
                f"and the new one waits on the host in {options['spool']}. Set fio_benchmark_replace to true, or name another campaign.",
                item=host,
                **result,
            )
        if not options["keep_on_host"]:
            result["changed"] |= self._drop(archive, host)
        states = ", ".join(f"{received.states[state]} {state}" for state in STATES if state in received.states)
        self._display.display(f"{host}: {format_size(archive.size)} collected ({states})")
        return result

    def _rejected(self, received: Received, host: str, spool: str, result: dict[str, t.Any]) -> DamagedArchive:
        """The message about rejected cells. The accepted ones have been stored before."""
        reasons = {str(key): plain(why, 300) for key, why in received.rejected.items()}
        named = "; ".join(f"{key}: {why}" for key, why in list(reasons.items())[:_NAMED])
        more = f" (and {len(reasons) - _NAMED} more)" if len(reasons) > _NAMED else ""
        return DamagedArchive(
            f"{len(reasons)} of the {len(reasons) + len(received.accepted)} cells of host {host} are not accepted: {named}{more}. They are still on the"
            f" host in {spool}, and count as failed; the others are stored. Measure them again, or check that host.",
            item=host,
            **{**result, "rejected": reasons},
        )

    def _receive(self, archive: _Archive, campaign: Path, host: str, replace: bool) -> Received:
        """Fetch the archive next to the results and import it; the fetched copy is always deleted."""
        if archive.size > LARGEST_ARCHIVE:
            raise DamagedArchive(f"Host {host} has an archive of {format_size(archive.size)} and at most {format_size(LARGEST_ARCHIVE)} are accepted.")
        expected = store.expected_cells(campaign, host)
        # Once for the archive and once for what is in it.
        require_space(campaign, 2 * archive.size + MIB, f"collecting the results of host {host}")
        local = new_file(campaign, f".fetch.{host}.")
        try:
            self._fetch(archive, local, campaign, host)
            found = file_sha256(local)
            if found != archive.sha256:
                raise DamagedArchive(
                    f"The archive of host {host} arrived damaged (its SHA-256 is {found} and not {archive.sha256}): "
                    f"run again, it is still on the host in {archive.path}.",
                    item=host,
                )
            return receive(local, campaign, host, expected, replace=replace)
        finally:
            local.unlink(missing_ok=True)

    def _fetch(self, archive: _Archive, local: Path, campaign: Path, host: str) -> None:
        try:
            fetch(self._connection, archive.path, local, archive.size, host)
        except (AnsibleConnectionFailure, DamagedArchive):
            raise
        except (AnsibleError, OSError) as error:
            # sftp and scp do not distinguish a full disk from a missing file: the free space is checked.
            require_space(campaign, archive.size + MIB, f"collecting the results of host {host}")
            raise ResultsError(
                f"The archive {archive.path} of host {host} could not be fetched: {plain(error, 300)}. The results are still on the host; run again.",
                item=host,
            ) from error

    def _drop(self, archive: _Archive, host: str) -> bool:
        """Delete the collected copy on the host, by one command: a module costs more. If this fails, the results are not affected."""
        folder, packed = map(shlex.quote, archive.leftovers)
        answer = RawShell(self, host).do(f"{{ test -e {folder} || test -e {packed}; }} && echo found; rm -rf -- {folder} {packed}")
        if answer.rc != 0:
            self._display.warning(f"{host}: the results are collected and could not be removed from the host: {plain(answer.stderr or answer.stdout, 300)}")
        return answer.rc == 0 and "found" in answer.stdout


class _Archive:
    """The archive as reported by a host, validated: only a path in its spool is accepted."""

    def __init__(self, reported: t.Mapping[str, t.Any], spool: str, campaign: str, host: str) -> None:
        path, sha256, size = (reported.get(name) for name in ("path", "sha256", "size"))
        root = posixpath.normpath(spool)
        below = f"{root}/"
        if not isinstance(path, str) or not _HOST_PATH.match(path) or posixpath.normpath(path) != path or not path.startswith(below):
            raise DamagedArchive(f"Host {host} names the archive '{plain(path)}', which is not a file below {root}: nothing was fetched.", item=host)
        if not isinstance(sha256, str) or not _SHA256.match(sha256):
            raise DamagedArchive(f"Host {host} gives '{plain(sha256, 80)}' for the SHA-256 of its archive: nothing was fetched.", item=host)
        if not isinstance(size, int) or size < 0:
            raise DamagedArchive(f"Host {host} gives '{plain(size, 80)}' for the size of its archive: nothing was fetched.", item=host)
        self.path, self.sha256, self.size = str(path), str(sha256), int(size)
        self.leftovers = (f"{below}{component(campaign, 'campaign')}", self.path)
