# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the field cases (docs/cases) are accepted: variants are built, entries have the options of their layers, and measurements are planned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import read_request
from ansible_collections.cachefleet.storage.plugins.modules.cache_layers import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import make_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.costs import read_prices
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.on_host import Found, host_sweep
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import (
    CACHES,
    CONTROLLERS,
    DRIVES,
    LINKS,
    QUEUES,
    TARGETS,
    read_variants,
)

TOP = Path(__file__).resolve().parents[3]
SUITES = {name: suite for path in sorted((TOP / "roles/fio_benchmark/files/suites").glob("*.yml")) for name, suite in yaml.safe_load(path.read_text()).items()}
OPTIONS = {DRIVES: "drives", CONTROLLERS: "controllers", CACHES: "caches", QUEUES: "queues"}
#: Lines of variables of one page.
MOST_LINES = 25
BLOCKS = [
    pytest.param(text, id=f"{path.stem}-{number}")
    for path in sorted((TOP / "docs/cases").glob("?.md"))
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", path.read_text(), flags=re.DOTALL))
]


def accepted(variables):
    """:raises StorageError: for entries that a layer does not accept."""
    params = {option: variables.get(name) or [] for name, option in OPTIONS.items()}
    read_request(ArgumentSpecValidator(argument_spec()).validate(params).validated_parameters)


def test_each_case_has_a_page():
    assert sorted(path.name for path in (TOP / "docs/cases").iterdir()) == ["README.md", "a.md", "b.md", "c.md", "d.md", "e.md"]


@pytest.mark.parametrize("page", ["a", "b", "c", "d", "e"])
def test_a_page_has_few_variables(page):
    text = (TOP / f"docs/cases/{page}.md").read_text()
    lines = [line for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL) for line in block.splitlines() if not line.startswith("#")]
    assert 0 < len(lines) <= MOST_LINES


@pytest.mark.parametrize("text", BLOCKS)
def test_variables_are_accepted_and_measurements_planned(text):
    variables = yaml.safe_load(text)
    if "report_prices" in variables:
        assert read_prices(variables["report_prices"])
        return
    accepted(variables)
    targets = [variables.get(TARGETS)]
    if "sweep_axes" in variables or "sweep_variants" in variables:
        variants = read_variants(variables.get("sweep_variants"), variables.get("sweep_axes"), baseline=variables.get("sweep_baseline", "baseline"))
        for one in variants:
            # A cache may be incomplete here, and is not below.
            accepted({name: entries for name, entries in one.variables.items() if name != CACHES})
        complete = host_sweep([one for one in variants if not {DRIVES, CONTROLLERS, LINKS} & one.variables.keys()], Found({}), {})
        assert complete.refused == {}
        for whole in complete.variables.values():
            accepted(whole)
        targets = [one.variables.get(TARGETS, variables.get(TARGETS)) for one in variants]
    for of_variant in targets if "fio_benchmark_suite" in variables else ():
        assert make_plan(variables["fio_benchmark_suite"], SUITES, of_variant).runs


def test_case_a_has_its_modes():
    [raid, sata] = [yaml.safe_load(block.values[0]) for block in BLOCKS if block.id.startswith("a-")]
    names = [one.name for block in (raid, sata) for one in read_variants(None, block["sweep_axes"])]
    assert names == ["drive_off-controller_off", "drive_off-controller_on", "drive_on-controller_off", "drive_on-controller_on", "drive_off", "drive_on"]


def test_the_sweep_of_the_virtual_rack_covers_its_caches_and_the_cache_of_its_disk():
    folder = TOP / "inventories/virtual_rack/group_vars/rack"
    swept, inventory = (yaml.safe_load((folder / f"{name}.yml").read_text()) for name in ("sweep", "storage"))
    described = [{**one, DRIVES: swept[one[DRIVES].strip("{} ")]} for one in swept["sweep_variants"]]
    variants = read_variants(described, None, [], baseline=swept["sweep_baseline"])
    [drive] = inventory[DRIVES][:1]
    found = Found({DRIVES: [{**drive, "write_cache": "enabled"}]}, (), {drive["device"]: "sda"})
    planned = host_sweep(variants, found, inventory)
    assert planned.refused == {}
    states = {name: (one[CACHES][0].get("mode"), one[DRIVES][0]["write_cache"]) for name, one in planned.variables.items()}
    assert states == {
        "bare-disk_on": (None, "enabled"),
        "bare-disk_off": (None, "disabled"),
        "writethrough-disk_on": ("writethrough", "enabled"),
        "writethrough-disk_off": ("writethrough", "disabled"),
        "writeback-disk_on": ("writeback", "enabled"),
        "writeback-disk_off": ("writeback", "disabled"),
    }
    assert planned.restore == {DRIVES: [{**drive, "write_cache": "enabled"}], CACHES: planned.variables["bare-disk_off"][CACHES]}
    for one in planned.variables.values():
        accepted(one)
