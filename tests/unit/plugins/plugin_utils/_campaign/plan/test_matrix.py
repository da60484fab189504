# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matrices: every combination once, and none that was taken out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import matrix_rows

WORKLOADS = {"write": {"rw": "randwrite"}, "mix70": {"rw": "randrw", "rwmixread": 70}}


def names(matrix):
    return [row["name"] for row in matrix_rows(matrix, "here")]


def test_first_axis_varies_slowest_and_names_are_built_from_labels():
    assert names({"axes": {"workload": WORKLOADS, "bs": ["1k", "1m"], "numjobs": [1], "iodepth": [32]}}) == [
        "write-1k-j1-d32",
        "write-1m-j1-d32",
        "mix70-1k-j1-d32",
        "mix70-1m-j1-d32",
    ]


def test_job_combines_common_options_and_those_of_every_axis():
    matrix = {
        "name": "x{bs}",
        "axes": {"workload": {"mix": WORKLOADS["mix70"]}, "bs": ["4k"]},
        "options": {"direct": 1, "bs": "1m"},
        "runtime": "3m",
        "ramp_time": 10,
    }
    assert matrix_rows(matrix, "here") == [
        {"name": "x4k", "job": {"direct": 1, "bs": "4k", "time_based": 1, "runtime": "3m", "ramp_time": 10, "rw": "randrw", "rwmixread": 70}}
    ]


def test_matrix_values_apply_to_each_cell():
    matrix = {"axes": {"bs": ["4k", "8k"], "share": [100, 70]}, "repeats": 3, "pause": 5, "measures_garbage_collection": True}
    rows = matrix_rows(matrix, "here")
    assert [row["share"] for row in rows] == [100, 70, 100, 70]
    assert all(row["repeats"] == 3 and row["pause"] == 5 and row["measures_garbage_collection"] for row in rows)
    assert all("share" not in row["job"] for row in rows)


def test_axis_can_set_the_limit_of_a_search():
    matrix = {
        "axes": {"rw": ["randread"], "bound": {"p99": {"metric": "p99", "limit": "1ms"}, "mean": {"metric": "mean", "limit": "3ms"}}},
        "search": {"over": "iodepth"},
    }
    assert [(row["name"], row["search"], row["job"]) for row in matrix_rows(matrix, "here")] == [
        ("randread-p99", {"over": "iodepth", "metric": "p99", "limit": "1ms"}, {"rw": "randread"}),
        ("randread-mean", {"over": "iodepth", "metric": "mean", "limit": "3ms"}, {"rw": "randread"}),
    ]


def test_exclude_and_only_select_combinations():
    axes = {"engine": {"sync": {"ioengine": "sync"}, "async": {"ioengine": "libaio"}}, "iodepth": [1, 32]}
    assert names({"axes": axes, "exclude": [{"engine": "sync", "iodepth": 32}, {"engine": "async", "iodepth": [1]}]}) == ["sync-d1", "async-d32"]
    assert names({"axes": axes, "only": [{"engine": "async"}]}) == ["async-d1", "async-d32"]


AXES = st.dictionaries(
    st.sampled_from(["bs", "iodepth", "numjobs", "rwmixread", "workload"]), st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True), min_size=1
)


@given(AXES)
def test_every_combination_is_generated_once(axes):
    rows = matrix_rows({"axes": axes}, "here")
    combinations = {tuple(row["job"][axis] for axis in axes) for row in rows}
    count = 1
    for values in axes.values():
        count *= len(values)
    assert len(rows) == len(combinations) == len({row["name"] for row in rows}) == count


@given(AXES, st.data())
def test_exclude_and_only_are_complementary(axes, data):
    axis = data.draw(st.sampled_from(sorted(axes)))
    chosen = [{axis: data.draw(st.sampled_from(axes[axis]))}]

    def taken(**selection):
        try:
            return names({"axes": axes, **selection})
        except BadInput:
            return []

    assert sorted(taken(exclude=chosen) + taken(only=chosen)) == sorted(names({"axes": axes}))


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([], "must be a dictionary"),
        ({"axis": {}}, "'axis' is not supported"),
        ({"axes": {}}, "at least one axis"),
        ({"axes": {"bs": "4k"}}, "axis bs must be a list of values"),
        ({"axes": {"bs": []}}, "axis bs: it has no value"),
        ({"axes": {"bs": [["4k"]]}}, "axis bs: its values must be texts or numbers"),
        ({"axes": {"bs": ["4k", "4k"]}}, "axis bs: it has '4k' twice"),
        ({"axes": {"x": {"a": "read"}}}, "axis x: each of its names must have a dictionary"),
        ({"axes": {"bs": list(range(200)), "iodepth": list(range(200))}}, "40000 combinations"),
        ({"axes": {"bs": ["4k"]}, "name": 5}, "'name' must be a text"),
        ({"axes": {"bs": ["4k"]}, "name": "{size}"}, "'name' uses '{size}'"),
        ({"axes": {"bs": ["4k", "8k"]}, "name": "x"}, "'name' must contain {bs}"),
        ({"axes": {"bs": ["4k"]}, "exclude": {"bs": "4k"}}, "'exclude' must be a list"),
        ({"axes": {"bs": ["4k"]}, "exclude": [{"rw": "read"}]}, "there is no axis 'rw'"),
        ({"axes": {"bs": ["4k"]}, "only": [{"bs": "8k"}]}, "the axis bs has no value '8k'; it has 4k"),
        ({"axes": {"bs": ["4k"]}, "exclude": [{"bs": "4k"}]}, "leave no combination"),
        ({"axes": {"bs": ["4k"]}, "options": []}, "'options' must be a dictionary"),
        ({"axes": {"limit": ["1ms"]}, "search": "x"}, "'search' must be a dictionary"),
    ],
)
def test_invalid_matrix_is_rejected_in_one_sentence(matrix, sentence):
    with pytest.raises(BadInput, match=r"^here") as caught:
        matrix_rows(matrix, "here")
    assert sentence in caught.value.message
    assert caught.value.message.endswith(".")
