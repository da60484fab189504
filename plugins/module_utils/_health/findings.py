# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One finding about a host, as a line, with what it was measured against. And the limits themselves."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: From the worst on.
SEVERITIES = ("critical", "warning", "info")


@frozen
class Finding:
    """One finding.

    :param severity: ``critical``: data is lost or will be soon; ``warning``: act before it becomes that; ``info``: for information.
    :param subject: the cache, drive, array or controller, as users name it.
    :param check: what was checked, a word that stays the same between versions.
    :param message: one line that begins with the subject and that states what to do.
    :param value: what was found; limit: what it was compared with; None if there is no number.
    """

    severity: str
    subject: str
    check: str
    message: str
    value: t.Any = None
    limit: t.Any = None

    @property
    def key(self) -> str:
        """What it is as one word, by which a later run finds it again; what was measured is not in it."""
        return f"{self.severity} {self.check} {self.subject}"

    def to_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def in_order(findings: t.Iterable[Finding]) -> list[Finding]:
    """The worst first, then by subject and check; each once."""
    unique = {(finding.severity, finding.subject, finding.check, finding.message): finding for finding in findings}
    return sorted(unique.values(), key=lambda finding: (SEVERITIES.index(finding.severity), finding.subject, finding.check, finding.message))


def worse_than(findings: t.Iterable[Finding], before: t.Container[str]) -> list[Finding]:
    """The problems that are new or more severe than in an earlier run.

    :param before: the keys of the problems of that run.
    """
    worse = []
    for finding in findings:
        severer = SEVERITIES[: SEVERITIES.index(finding.severity) + 1]
        if finding.severity != "info" and not any(dataclasses.replace(finding, severity=severity).key in before for severity in severer):
            worse.append(finding)
    return worse


@frozen
class Limits:
    """From where on something is a finding. Percent, unless noted otherwise.

    :param wear_used: of the rated endurance of a drive: critical from here on. The same as a normalised wear attribute of 100 less this.
    :param wear_used_soon: a warning from here on.
    :param reallocated: sectors a drive has replaced, a count.
    :param dirty: of the size of a cache: critical from here on; ``dirty_average``: of the mean of the readings kept, a warning.
    :param metadata: of the capacity for the metadata of a cache: a warning from here on.
    :param read_hits: of what was looked up in a cache between two readings: a warning below.
    :param uncacheable: of the requests to a cache: a warning from here on.
    :param requests: with fewer requests between two readings than this, rates are meaningless; a count.
    """

    wear_used: int = 90
    wear_used_soon: int = 80
    reallocated: int = 100
    dirty: int = 70
    dirty_average: int = 30
    metadata: int = 80
    read_hits: int = 20
    uncacheable: int = 20
    requests: int = 1000
