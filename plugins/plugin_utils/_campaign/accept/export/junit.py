# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judgements as JUnit XML: a suite for each host, a case for each requirement of each device.

A failure is a requirement that is not met. What is undecided or was not measured is an error, as in ``compare``: a skipped case would let a pipeline
pass. The elements are those that the schemas of both Ant and Jenkins have, in the order of Ant's.
"""

from __future__ import annotations

import typing as t
from xml.etree import ElementTree

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import FAIL, PASS, Judgement

#: Of a run whose time is not given.
_NO_TIME = "1970-01-01T00:00:00"


def text(judgements: t.Iterable[Judgement], when: str = _NO_TIME) -> str:
    """The whole file.

    :param when: UTC, as ``2026-11-29T12:00:00Z``; the schema has no time zone.
    """
    hosts: dict[str, list[Judgement]] = {}
    for one in judgements:
        hosts.setdefault(one.host, []).append(one)
    root = ElementTree.Element("testsuites")
    for number, (host, some) in enumerate(hosts.items()):
        _suite(root, number, plain(host) or "unknown", some, when[: len(_NO_TIME)])
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, number: int, host: str, some: t.Sequence[Judgement], when: str) -> None:
    failures = sum(one.state == FAIL for one in some)
    errors = sum(one.state not in (FAIL, PASS) for one in some)
    counts = {"tests": str(len(some)), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    suite = ElementTree.SubElement(root, "testsuite", name=host, package="accept", id=str(number), timestamp=when, hostname=host, time="0", **counts)
    ElementTree.SubElement(suite, "properties")
    for one in some:
        case = ElementTree.SubElement(suite, "testcase", classname=f"{host}.{plain(one.target) or 'host'}", name=plain(one.requirement.name), time="0")
        if one.state != PASS:
            what = ElementTree.SubElement(case, "failure" if one.state == FAIL else "error", type=one.state, message=plain(one.reason, 500))
            what.text = f"Limit from: {plain(one.requirement.source)}"
    passed = [plain(f"{one.target} {one.requirement.name}: {one.reason}", 700) for one in some if one.state == PASS]
    ElementTree.SubElement(suite, "system-out").text = "\n".join(passed)
    ElementTree.SubElement(suite, "system-err")
