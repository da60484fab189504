# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.machine import describe_machine
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write


def test_machine_as_the_kernel_reports_it(tmp_path):
    write(
        tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)  Gold 6226R\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R)  Gold 6226R\n"
    )
    write(tmp_path, "proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n")
    write(tmp_path, "sys/class/dmi/id/sys_vendor", "Dell Inc.\n")
    write(tmp_path, "sys/class/dmi/id/product_name", "PowerEdge R640\n")
    assert describe_machine(tmp_path) == {
        "cpu": "Intel(R) Xeon(R) Gold 6226R", "cpus": 2, "memory": 16384 * 1024, "vendor": "Dell Inc.", "product": "PowerEdge R640"
    }  # fmt: skip


def test_what_cannot_be_read_is_none(tmp_path):
    assert describe_machine(tmp_path) == dict.fromkeys(("cpu", "cpus", "memory", "vendor", "product"))
