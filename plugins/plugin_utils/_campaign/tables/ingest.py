# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the files of a campaign to its tables: only of hosts that have changed, on several CPUs.

Files are the truth and tables are derived: whatever is wrong with a table is mended by writing it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import CAMPAIGN_FILE, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import duckdb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.host_tables import DIGEST_KEY, TABLES_KEY, HostWriter, Written, host_digest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import TABLES, TABLES_FOLDER, part_path
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import quoted_glob

#: With fewer hosts than this another process costs more than it saves.
_HOSTS_PER_WORKER = 8

_MOST_WORKERS = 16

_DIGEST = DIGEST_KEY.encode()
_TABLES = TABLES_KEY.encode()


@dataclass(frozen=True)
class Ingested:
    """What was written.

    :param campaign: its name, as the tables have it; ``folder``: the folder of tables.
    :param written: hosts whose tables were written; ``unchanged``: those whose tables were right already.
    :param removed: hosts whose tables were taken away, because the campaign has them no more.
    :param cells: measurements of the hosts that were written.
    :param problems: what was left out, and why, as sentences.
    """

    campaign: str
    folder: Path
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    cells: int
    problems: tuple[str, ...]

    @property
    def changed(self) -> bool:
        return bool(self.written or self.removed)


def ingest(campaign: Path, tables: Path | None = None, *, force: bool = False, workers: int | None = None, dry_run: bool = False) -> Ingested:
    """Bring the tables of a campaign up to date.

    :param campaign: its folder.
    :param tables: where they should lie; ``tables`` in the folder of the campaign by default. Several campaigns, and several
        controllers, may write into one.
    :param force: write hosts again that have not changed.
    :param workers: processes; by default one more than CPUs, if there are hosts enough.
    :param dry_run: change nothing.
    :raises ResultsError: if it is not the folder of a campaign, or the tables cannot be written.
    :raises LibraryMissing: without duckdb.
    """
    problems: list[str] = []
    name, writer = identity_of(campaign)
    root = tables if tables is not None else campaign / TABLES_FOLDER
    hosts = store.host_folders(campaign, problems)
    if not hosts and not (campaign / CAMPAIGN_FILE).exists():
        raise ResultsError(f"{campaign} is not the folder of a campaign: it holds neither {CAMPAIGN_FILE} nor results.")
    known = {} if force else _digests(root, name, writer)
    # Of hosts without tables nothing need be read here, one after the other: the writer of their tables reads all of it.
    due = [host.name for host in hosts if host.name not in known or known[host.name] != host_digest(host)]
    names = {host.name for host in hosts}
    gone = _gone(root, name, writer, names, alone=tables is None)
    if not dry_run:
        with explained(root, "making the folder of tables"):
            root.mkdir(parents=True, exist_ok=True)
            for path in gone:
                path.unlink(missing_ok=True)
    written = [] if dry_run else _write(campaign, name, root, writer, due, workers)
    removed = sorted({path.parent.name.partition("=")[2] for path in gone} - names)
    return Ingested(
        campaign=name,
        folder=root,
        written=tuple(due),
        unchanged=tuple(sorted(names - set(due))),
        removed=tuple(removed),
        cells=sum(one.cells for one in written),
        problems=(*problems, *(f"{one.host}: {problem}" for one in written for problem in one.problems)),
    )


def identity_of(campaign: Path) -> tuple[str, str]:
    """Name of a campaign, and what the files of its tables are called.

    The second is the same wherever the folder is copied, and another one for a campaign that was opened elsewhere under the same name.

    :raises ResultsError: if there is no such folder.
    """
    if not campaign.is_dir():
        raise ResultsError(f"There is no campaign in {campaign}: that folder does not exist. Give a folder that holds {CAMPAIGN_FILE}.")
    raw: dict[str, t.Any] = {}
    if (campaign / CAMPAIGN_FILE).is_file():
        raw = read_json(campaign / CAMPAIGN_FILE)
    try:
        name = component(raw.get("campaign", campaign.absolute().name), "campaign")
    except StorageError as error:
        raise ResultsError(f"{campaign / CAMPAIGN_FILE}: {error.message}") from None
    return name, hashlib.sha256(f"{name}\n{plain(raw.get('created', ''))}".encode()).hexdigest()[:12]


# ---------------------------------------------------------------------------------------------------------------------
# What is there


def _digests(root: Path, campaign: str, writer: str) -> dict[str, str]:
    """From which files of results the tables of each host were made."""
    there = {path.parts[-4:-1] for path in root.glob(f"*/campaign={campaign}/host=*/part-{writer}.parquet")}
    pattern = f"cells/campaign={campaign}/host=*/part-{writer}.parquet"
    if not any(table == "cells" for table, _campaign, _host in there):
        return {}
    try:
        with duckdb.connect(config={"threads": 1}) as database:
            rows = database.execute("SELECT file_name, key, value FROM parquet_kv_metadata(?)", [f"{quoted_glob(root)}/{pattern}"]).fetchall()
    except duckdb.Error:
        # One of them is damaged: which one does not matter, for all can be written again.
        return {}
    raw: dict[str, dict[bytes, str]] = {}
    for name, key, value in rows:
        raw.setdefault(Path(name).parent.name.partition("=")[2], {})[key] = value.decode(errors="replace")
    return {host: words[_DIGEST] for host, words in raw.items() if _DIGEST in words and _has_all(words, f"campaign={campaign}", f"host={host}", there)}


def _has_all(words: t.Mapping[bytes, str], campaign: str, host: str, there: t.Container[tuple[str, ...]]) -> bool:
    """Whether every table of a host is where it was written."""
    return all((table, campaign, host) in there for table in words.get(_TABLES, "cells").split())


def _gone(root: Path, campaign: str, writer: str, hosts: set[str], *, alone: bool) -> list[Path]:
    """Files of tables that nothing stands for any more.

    :param alone: whether all of the folder is of this campaign; else only what this writer has written is checked.
    """
    expected = {part_path(root, table.name, campaign, host, writer) for table in TABLES for host in hosts}
    pattern = "*/campaign=*/host=*/*.parquet" if alone else f"*/campaign={campaign}/host=*/part-{writer}.parquet"
    return sorted(path for path in root.glob(pattern) if path not in expected)


# ---------------------------------------------------------------------------------------------------------------------
# Writing


def write_hosts(campaign: Path, name: str, root: Path, writer: str, due: t.Sequence[str]) -> t.Iterator[Written]:
    """Write one host after the other, in this process."""
    tables = HostWriter(name, root, writer)
    try:
        for host in due:
            yield tables.write(campaign / host)
    finally:
        tables.close()


def _write(campaign: Path, name: str, root: Path, writer: str, due: t.Sequence[str], workers: int | None) -> list[Written]:
    # One process more than there are CPUs: now and then one waits for a file that is not in memory.
    count = workers if workers is not None else min(len(os.sched_getaffinity(0)) + 1, len(due) // _HOSTS_PER_WORKER, _MOST_WORKERS)
    if count <= 1 or len(due) <= 1:
        return list(write_hosts(campaign, name, root, writer, due)) if due else []
    # Processes of their own, not forks: this may run in a process of Ansible, with threads and locks that a fork would inherit.
    running = [_start(campaign, name, root, writer, due[number::count]) for number in range(count)]
    try:
        return [one for process in running for one in _written(process)]
    finally:
        for process in running:
            process.kill()
            process.wait()


def _start(campaign: Path, name: str, root: Path, writer: str, due: t.Sequence[str]) -> subprocess.Popen[str]:
    # The folder that holds ansible_collections: in a worker there is no loader of collections.
    place = next(parent.parent for parent in Path(__file__).absolute().parents if parent.name == "ansible_collections")
    search = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": search},
    )
    order = {"campaign": str(campaign.absolute()), "name": name, "root": str(root.absolute()), "writer": writer, "due": due}
    try:
        process.stdin.write(json.dumps(order))  # type: ignore[union-attr]
        process.stdin.close()  # type: ignore[union-attr]
    except BrokenPipeError:
        # Why it is gone already is on its standard error.
        pass
    return process


def _written(process: subprocess.Popen[str]) -> list[Written]:
    """The output of a worker, one line of JSON for each host, and in the end why it stopped."""
    found = []
    for line in process.stdout:  # type: ignore[union-attr]
        raw = json.loads(line)
        if "error" in raw:
            raise ResultsError(raw["error"])
        found.append(Written(raw["host"], raw["cells"], tuple(raw["problems"])))
    if process.wait() != 0:
        reason = process.stderr.read().strip().splitlines()[-1:]  # type: ignore[union-attr]
        raise ResultsError(f"A process that writes tables ended with status {process.returncode} ({plain(''.join(reason))}): run it again with one worker.")
    return found
