# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O that a suite names by their paths on the controller: what is in them, and their way to a host.

A plan has what was found in a log instead of the log. The host compares this with the file that is copied to it (``_fio/supplied_logs.py``).
"""

from __future__ import annotations

import functools
import gzip
import json
import shutil
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import replay

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction

_RUNNER = "cachefleet.storage.fio_runner"
#: What a value is that is no path, but a log.
_CONTENT = ("fio version", "packed:")


def located(job: t.Any, where: str) -> t.Any:
    """A job with what is in its logs instead of their paths.

    :param where: what a message begins with.
    :raises BadInput: if a file cannot be read, or is no log that fio could replay.
    """
    return replay.with_logs(job, lambda section: _located(section, where))


def _located(section: t.Mapping[str, t.Any], where: str) -> t.Any:
    given = section[replay.LOG]
    if not isinstance(given, str) or not given or "\n" in given or given.startswith(_CONTENT):
        return given
    options = {name: value for name, value in section.items() if name in replay.OPTIONS and name != replay.LOG}
    try:
        path = Path(given).expanduser().absolute()
        if not path.is_file():
            raise BadInput(f"the log {given} ({replay.LOG}) is not a file on the controller.")
        found = path.stat()
        return _found(str(path), (found.st_size, found.st_mtime_ns), json.dumps(options, default=str)).to_dict(str(path))
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{where}: the log {given[:200]} ({replay.LOG}) cannot be read on the controller: {error}.") from None
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}") from None


@functools.lru_cache(maxsize=64)
def _found(path: str, _changed: tuple[int, int], options: str) -> replay.Replay:
    """:param _changed: when the file was changed, as another one is read again."""
    stream = replay.LogStream(json.loads(options), path, replay.MOST_FILE_IOS)
    for _piece in replay.changed_file(path, stream):
        pass
    return stream.replay()


def supply(action: StorageAction, options: t.Any, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
    """Copy the logs that a host is to replay and does not have.

    :param options: of the module ``fio_runner``.
    :returns: what has failed, else nothing.
    """
    files = list(dict.fromkeys(_files_in(options)))
    if not files or action._task.check_mode:
        return {}
    arguments = {**options, "state": "supplied"}
    answer = action._execute_module(module_name=_RUNNER, module_args=arguments, task_vars=task_vars)
    reported = answer.get("missing")
    # A host does not say which files of the controller it gets.
    missing = [path for path in files if isinstance(reported, list) and path in reported]
    if not answer.get("failed") and missing:
        try:
            arguments = {**arguments, "logs": _copied(action, missing)}
        except OSError as error:
            return {"failed": True, "changed": False, "msg": f"The log {error.filename} could not be copied to this host: {error.strerror}."}
        answer = action._execute_module(module_name=_RUNNER, module_args=arguments, task_vars=task_vars)
        action._remove_tmp_path(action._connection._shell.tmpdir)
    return answer if answer.get("failed") else {}


def _files_in(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, t.Mapping):
        log = value.get(replay.LOG)
        if isinstance(log, t.Mapping) and isinstance(log.get("file"), str):
            yield log["file"]
    for one in value.values() if isinstance(value, t.Mapping) else value if isinstance(value, list) else ():
        yield from _files_in(one)


def _copied(action: StorageAction, paths: t.Sequence[str]) -> dict[str, str]:
    """Where each file is on the host, compressed, until the temporary folder is removed."""
    shell = action._connection._shell
    folder = shell.tmpdir or action._make_tmp_path()
    found = {}
    with tempfile.TemporaryDirectory(prefix="cachefleet-") as drafts:
        for number, path in enumerate(paths):
            found[path] = action._transfer_file(_packed(path, Path(drafts) / f"{number}.gz"), shell.join_path(folder, f"{number}.iolog.gz"))
    action._fixup_perms2([folder, *found.values()])
    return found


def _packed(path: str, draft: Path) -> str:
    with open(path, "rb") as log:
        if log.peek(2)[:2] == replay.GZIP:
            return path
        with gzip.open(draft, "wb") as file:
            shutil.copyfileobj(log, file)
    return str(draft)
