# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever a host sends: no exception but those of the collection, no file outside of its folder, and memory with a limit.

The environment variable ``CACHEFLEET_FUZZ_INPUTS`` says how many inputs are tried in all, ``CACHEFLEET_FUZZ_SEED`` another seed.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import summary as fio_summary
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export import influx, ndjson, openmetrics
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.archive import receive
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import fio_result
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import twins, write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import aggregate, answers, compare, table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import rows_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.runner_status import read_status
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables import integrity
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables
from ansible_collections.cachefleet.storage.tests.unit.fuzz import mutations
from ansible_collections.cachefleet.storage.tests.unit.support.archives import CAMPAIGN, cell, pack
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

INPUTS = int(os.environ.get("CACHEFLEET_FUZZ_INPUTS", "5000"))
SEED = int(os.environ.get("CACHEFLEET_FUZZ_SEED", "20261122"))
NOW = datetime.datetime(2026, 11, 21, 14, 3, tzinfo=datetime.timezone.utc)

#: Bytes of address space that one input may take beside what the process has.
MEMORY = 1536 << 20


def inputs(share):
    """A part of all inputs, each from a seed of its own."""
    count = max(int(INPUTS * share), 1)
    chosen = settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))

    def decorate(test):
        return seed(SEED)(chosen(given(number=st.integers(0, 2**128 - 1))(test)))

    return decorate


@pytest.fixture(autouse=True, scope="module")
def memory_limit():
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


# --- archives

STORED = re.compile(rf"{CAMPAIGN}/(campaign\.json|node1/before/plan\.json|node1/before/randwrite-4k/[123]/[A-Za-z0-9][A-Za-z0-9._-]*)\Z")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder, _is_new = store.open_campaign(tmp_path_factory.mktemp("fuzz") / "results", CAMPAIGN, now=NOW)
    store.write_plan(folder, "node1", "before", [("randwrite-4k", repeat) for repeat in (1, 2, 3)], now=NOW)
    return folder


@pytest.fixture(scope="module")
def honest_archive(campaign):
    return pack(campaign.parent.parent / "honest.tar", cell(), cell(repeat=2)).read_bytes()


@pytest.fixture(scope="module")
def fio_objects(request):
    """What fio has printed: the captured outputs where they are, and those of the synthetic campaign."""
    found = []
    # Beside the checkout, as in conftest.py; without them the synthetic ones must do.
    samples = pathlib.Path(__file__).resolve().parents[3].parent / "shared/samples/fio"
    for path in sorted(samples.rglob("*.json")):
        found += fio_output.split(path.read_text(errors="replace"))[0][-1:]
    folder = write_campaign(request.getfixturevalue("tmp_path_factory").mktemp("fio"), 1, cells=6, seconds=3)
    return found + [json.loads(gzip.decompress(path.read_bytes())) for path in sorted(folder.rglob("fio.json.gz"))]


@inputs(0.15)
def test_mutated_archives(campaign, honest_archive, number):
    rng = random.Random(number)
    path = campaign.parent.parent / "mutated.tar"
    if rng.random() < 0.7:
        path.write_bytes(mutations.archive(honest_archive, rng))
    else:
        # A whole archive whose files are hostile: the hashes are right.
        files = cell()
        files["before/randwrite-4k/1/meta.json"] = mutations.json_text(json.loads(files["before/randwrite-4k/1/meta.json"]), rng).encode("utf-8", "replace")
        pack(path, files, cell(repeat=2, content=mutations.damaged('{"fio version": "fio-3.33", "jobs": []}', rng).encode("utf-8", "replace")))
    try:
        received = receive(path, campaign, "node1", store.expected_cells(campaign, "node1"), replace=True)
        store.note_rejected(campaign, "node1", received.rejected, received.accepted)
    except StorageError as error:
        assert error.message.isprintable()
    assert [name for name in files_below(campaign.parent) if not STORED.match(name)] == []
    assert set(os.listdir(campaign.parent.parent)) == {"honest.tar", "mutated.tar", "results"}
    shutil.rmtree(campaign / "node1/before/randwrite-4k", ignore_errors=True)


# --- the output of fio


@inputs(0.3)
def test_mutated_fio_output(fio_objects, tmp_path_factory, number):
    rng = random.Random(number)
    folder = tmp_path_factory.getbasetemp() / "fio-output"
    folder.mkdir(exist_ok=True)
    texts = [mutations.json_text(rng.choice(fio_objects), rng) for _one in range(rng.choice((1, 1, 1, 2, 4)))]
    content = "\n".join([*(("fio: \"odd 'line",) if rng.random() < 0.2 else ()), *texts]).encode("utf-8", "replace")
    packed = gzip.compress(content, 1)
    if rng.random() < 0.05:
        packed = bytes(mutations._flip(bytearray(packed), rng))
    (folder / "fio.json.gz").write_bytes(packed)
    try:
        output = fio_result(folder)
        summary = fio_summary.summarize(output)
    except StorageError as error:
        assert "memory" not in error.message and error.message.isprintable()
        return
    json.dumps(summary, allow_nan=False, ensure_ascii=False).encode()


# --- the status of a runner

STATUS = {
    "schema": 1, "state": "measuring", "segment": 1, "step": 2, "steps": 9, "cell": "randwrite-4k", "repeat": 1, "target": "/dev/vdb", "iops": 1500.5,
    "bandwidth": 1e6, "latency_ms": 0.4, "since": 1.8e9, "until": 1.8e9 + 60, "all_until": 1.8e9 + 600, "done": 3, "failed": 0, "message": "",
    "time": 1.8e9 + 3,
    "pid": 4711, "pid_started": 99, "boot_id": "0" * 36, "order_sha256": "a" * 64,
}  # fmt: skip


@inputs(0.53)
def test_mutated_runner_status(number):
    rng = random.Random(number)
    try:
        status = read_status(mutations.json_text(STATUS, rng))
    except StorageError as error:
        assert error.message.isprintable()
        return
    reported = json.dumps(status.to_dict(), allow_nan=False)
    assert len(reported) < 4096
    assert all(value.isprintable() for value in status.to_dict().values() if isinstance(value, str))


# --- what is stored, read back


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return write_campaign(tmp_path_factory.mktemp("stored") / "synthetic", 2, cells=4, seconds=3)


def rewrite(place, rng):
    """Files of one cell changed; their hashes are right, as a hostile host would see to."""
    for name in rng.sample(["meta.json", "stack.json", "fio.json.gz", "series_iops.1.log.gz", "device_series.log.gz", "job.fio"], rng.choice((1, 1, 2))):
        path = place / name
        content = path.read_bytes()
        text = gzip.decompress(content).decode() if name.endswith(".gz") else content.decode()
        text = mutations.json_text(json.loads(text), rng) if "json" in name else mutations.damaged(text, rng)
        changed = text.encode("utf-8", "replace")
        path.write_bytes(gzip.compress(changed, 1) if name.endswith(".gz") else changed)
    try:
        meta = json.loads((place / "meta.json").read_text())
        meta["files"] = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in place.iterdir() if file.name != "meta.json"}
        (place / "meta.json").write_text(json.dumps(meta))
    except (ValueError, TypeError, RecursionError):
        return


def mutated(stored, folder, rng):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stored, folder)
    for place in rng.sample(sorted(path.parent for path in folder.rglob("meta.json")), rng.choice((1, 1, 3))):
        rewrite(place, rng)
    if rng.random() < 0.3:
        plan = rng.choice(sorted(folder.rglob("plan.json")))
        plan.write_text(mutations.json_text(json.loads(plan.read_text()), rng), errors="replace")
    return folder


@inputs(0.019)
def test_mutated_stored_results_are_reported(stored, tmp_path_factory, number):
    folder = mutated(stored, tmp_path_factory.getbasetemp() / "reported", random.Random(number))
    campaign = store.load_campaign(folder, contents=True)
    assert {record.host for record in campaign.cells} == {"host0000", "host0001"}
    files = CampaignFiles(campaign)
    rows = rows_of(files.measurements)
    ratios = compare.ratios_of(campaign.variants, rows, files.measurements)
    moments = aggregate.aggregates_of(files)
    rows += aggregate.rows_of(moments)
    found, _answered = answers.answers_of(campaign)
    text = table.render(campaign, rows, ratios, {}, aggregate.notes_of(moments), found)
    assert all(line.isprintable() for line in text.split("\n"))
    json.dumps([*(row.to_dict() for row in rows), *(one.to_dict() for one in moments)], allow_nan=False, ensure_ascii=False).encode()
    assert "too little memory" not in text


# --- tables, and what is made of them

LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"# (?:TYPE|UNIT|HELP|EOF)[^\n]*\n|[a-z_]+\{{{LABEL}(?:,{LABEL})*\}} -?[0-9][0-9.e+-]*\n")
TAG = r"(?:[^\\ ,=\n]|\\.)+"
POINT = re.compile(rf"fio_[a-z]+(?:,[a-z]+={TAG})+ [a-z0-9_]+=-?[0-9][0-9.e+-]*i?(?:,[a-z0-9_]+=-?[0-9][0-9.e+-]*i?)* -?[0-9]+\n")


@inputs(0.001)
def test_mutated_stored_results_become_tables_exports_and_a_report(stored, tmp_path_factory, number):
    folder = mutated(stored, tmp_path_factory.getbasetemp() / "exported", random.Random(number))
    ingest(folder, workers=1)
    database = open_tables(folder)
    try:
        (count,) = database.execute("SELECT count(DISTINCT (host, variant, cell, repeat)) FROM cells").fetchone()
        lines = list(ndjson.lines(database, tuple(ndjson.COLUMNS)))
        samples, points = list(openmetrics.lines(database)), list(influx.lines(database))
    finally:
        database.close()
    assert count >= 8
    assert all(line.count("\n") == 1 and isinstance(json.loads(line, parse_constant=pytest.fail), dict) for line in lines)
    assert [line for line in samples if not SAMPLE.fullmatch(line)] == []
    assert [line for line in points if not POINT.fullmatch(line)] == []
    analysed = write.analysed(folder, analysis.Options())
    assert all(line.isprintable() for line in twins.markdown(analysed).split("\n"))
    assert not re.search(r"(?:^|,)\"?[=@+]", twins.csv_text(analysed), re.MULTILINE)
    integrity.check(folder)
