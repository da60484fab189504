# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import read_cell, read_cells, read_target
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import ALIASES, COMPUTED, HARMLESS, REFUSED
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

JOB = {"rw": "write"}
ROW = {"name": "c", "target": {"device": "/dev/sdb"}, "job": JOB}


@pytest.mark.parametrize("kind", ["device", "file"])
@pytest.mark.parametrize(
    "path",
    [
        *("/srv/f ", " /srv/f", "/srv/f\t", "/srv/f\n", "\u00a0/srv/f", "/srv/a\\b", "/srv/\x1b[2J", "/srv/\x85", "srv/f", "./f", "-", "sda"),
        *("/srv/../etc/x", "/srv/..", "/" + "x" * 3000, "/srv/\udc80", 5, True, ["/srv/f"], {"a": 1}, b"/srv/f", 1.5),
    ],
)
def test_path_with_special_characters_of_fio_is_rejected(kind, path):
    with pytest.raises(BadInput, match=r"^c: "):
        read_target({kind: path}, "c")


@pytest.mark.parametrize("path", ["/srv/a b", "/srv/a:b", "/srv/\u00e4", "/srv/a..b", "/dev/disk/by-id/wwn-0x5000-part1"])
def test_other_paths_are_accepted(path):
    assert read_target({"file": path}, "c").path == path


@pytest.mark.parametrize("size", [0, -1, True, "1g", 1.5, [], 2**63])
def test_size_must_be_a_positive_integer(size):
    # fio takes a size of 0 for the whole device.
    with pytest.raises(BadInput, match="size of a target must be a number of bytes greater than 0"):
        read_target({"device": "/dev/sdb", "size": size}, "c")


def test_numeric_serial_is_converted_to_text():
    assert read_target({"device": "/dev/sdb", "identity": 12345}, "c").identity == "12345"
    for identity in (True, [], {}, 1.5):
        if identity:
            with pytest.raises(BadInput, match="identity of a target must be a text"):
                read_target({"device": "/dev/sdb", "identity": identity}, "c")


@pytest.mark.parametrize("permission", [1, 0, "yes", [], 1.0])
def test_permission_must_be_boolean(permission):
    with pytest.raises(BadInput, match="allow_data_loss"):
        read_target({"device": "/dev/sdb", "allow_data_loss": permission}, "c")


@pytest.mark.parametrize(
    "row",
    [
        *(None, [], "c", 5, {}, {**ROW, "name": None}, {**ROW, "name": ["c"]}, {**ROW, "target": None}, {**ROW, "target": []}, {**ROW, "job": None}),
        *({**ROW, "repeat": "x"}, {**ROW, "repeat": [1]}, {**ROW, "repeat": True}, {**ROW, "repeat": 10000}, {**ROW, "repeat": 1.5}),
        *({**ROW, "job": {"global": [], "jobs": [{"name": "a"}]}}, {**ROW, "job": {"jobs": {"a": 1}}}, {**ROW, "job": {1: 2}}, {**ROW, "job": {("a",): 2}}),
    ],
)
def test_invalid_rows_are_rejected(row):
    with pytest.raises(BadInput):
        read_cell("v", row)


def test_cells_must_be_a_list():
    for rows in (None, {}, "abc", 5):
        with pytest.raises(BadInput, match="cells must be a list"):
            read_cells("v", rows)
    with pytest.raises(BadInput, match="name of a variant must be a text"):
        read_cells(5, [])


_names = st.sampled_from(sorted({*ALIASES, *COMPUTED, *HARMLESS, *REFUSED, "global", "jobs", "name", "rw", "device", "file", "size", "target", "job"}))
_texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["read", "randwrite:8", "4k", "4k,8k", "10%", "1k-4k", "4k/50:8k/50", "libaio", "/dev/sdb", "global", "", "-1", "0", "'x'", "none", "1z"]),
)
_plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _texts)
_values = st.recursive(
    _plain,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(_names, _texts, st.integers(), st.none()), inner, max_size=5)),
    max_leaves=20,
)
_options = st.dictionaries(_names, _plain, max_size=6)
_jobs = st.one_of(
    _values,
    _options,
    st.fixed_dictionaries(
        {"jobs": st.one_of(_values, st.lists(st.one_of(_values, st.builds(lambda name, options: {**options, "name": name}, _texts, _options)), max_size=3))},
        optional={"global": st.one_of(_values, _options)},
    ),
)
_many = settings(max_examples=400, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@seed(14)
@_many
@given(_jobs)
def test_any_job_is_accepted_or_rejected_with_one_sentence(value):
    try:
        job = fio_job.read_job(value, "c")
    except BadInput as error:
        assert "\n" not in error.message
        error.message.encode()
        return
    text = fio_job.render(job, TargetFacts(target=GuardTarget("/dev/sdb"), path="/dev/sdb", size=10**9))
    assert [line for line in text.splitlines() if line.startswith("filename")] == ["filename=/dev/sdb"]
    assert text.count("[global") == 1
    assert 1 <= job.threads <= 4096
    assert job.longest is None or job.longest >= 0
    assert job.block_size is None or job.block_size >= 0
    assert len(job.workload_sha256) == 64


@seed(14)
@_many
@given(
    st.one_of(
        _values,
        st.fixed_dictionaries(
            {"name": _plain, "target": st.one_of(_values, st.dictionaries(_names, _plain, max_size=3)), "job": _jobs}, optional={"repeat": _plain}
        ),
        st.fixed_dictionaries(
            {
                "name": st.just("c"),
                "target": st.fixed_dictionaries({"device": st.one_of(st.just("/dev/sdb"), _plain)}, optional={"size": _plain}),
                "job": _options,
            }
        ),
    )
)
def test_any_cell_is_accepted_or_rejected_with_one_sentence(row):
    try:
        read_cell("v", row)
    except BadInput as error:
        assert "\n" not in error.message
        error.message.encode()
