# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An acceptance from the folder of its campaign: every judgement, the classes of hosts, the files that are written, and what has changed since earlier
certificates."""

from __future__ import annotations

import datetime
import json
import typing as t
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import certificate, measured, planning, signature
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.context import context_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.export import junit, markdown, metrics
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import MEASURED, NOT_MEASURED, Judgement, Requirement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.since_birth import SAME, Change, compare
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ACCEPT_FOLDER
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, write_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, host_classes, read_compared
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult

#: What distinguishes classes of hosts.
_CLASS = ("drives", "drive_firmware")


@dataclass(frozen=True)
class Outcome:
    """:param classes: what a host is, by host. :param states: the worst state of each host.
    :param drives: serial number and model by host and target, of drives that were measured or whose health was read."""

    judgements: list[Judgement]
    classes: dict[str, str]
    states: dict[str, str]
    drives: dict[tuple[str, str], tuple[str, str]]
    context: certificate.Context


def read(campaign: Path) -> Rows:
    """What was measured, from tables that are updated first."""
    if not store.host_folders(campaign, []):
        return Rows(campaign.name, [])
    ingest(campaign)
    return read_tables(campaign, lambda database: read_compared(database, campaign.name))


def judged(campaign: Path, plans: t.Sequence[planning.HostPlan], power_loss: t.Sequence[PowerLossResult] = ()) -> list[Judgement]:
    """All hosts; those with equal requirements together, as the noise of one host is that of its class."""
    groups: dict[tuple[t.Any, ...], list[planning.HostPlan]] = {}
    for one in plans:
        groups.setdefault((one.requirements, one.most), []).append(one)
    has_results = bool(store.host_folders(campaign, []))
    found = []
    for (requirements, most), of in groups.items():
        facts = {one.host: one.facts for one in of}
        if has_results:
            some = measured.judgements(campaign, requirements, facts, looks_planned=most, power_loss=power_loss)
        else:
            some = measured.judged(Rows(campaign.name, []), requirements, facts, looks_planned=most, power_loss=power_loss)
        by_host: dict[str, list[Judgement]] = {}
        for judgement in some:
            by_host.setdefault(judgement.host, []).append(judgement)
        found += [judgement for one in of for judgement in planning.as_planned(one, by_host.get(one.host, []))]
    return found


def outcome(campaign: Path, hosts: t.Iterable[str], problems: t.Mapping[str, str], power_loss: t.Sequence[PowerLossResult] = ()) -> Outcome:
    """:param hosts: all that are accepted. :param problems: why one of them was not measured to the end."""
    plans = planning.load_all(campaign)
    judgements = _with_problems(judged(campaign, plans, power_loss), hosts, problems)
    rows = read(campaign)
    classes = {host: ", ".join(value for value in one.facts.values() if value != "unknown") for one in host_classes(rows, _CLASS) for host in one.hosts}
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    context = context_of(campaign, now, rows.measurements, rows.settings)
    drives = {(one.host, drive.get("path")): (drive.get("serial"), drive.get("model") or "") for one in plans for drive in one.facts.get("drives", ())}
    drives |= {(one.host, one.target): (one.serial, one.model) for one in context.devices}
    known = {key: value for key, value in drives.items() if value[0]}
    return Outcome(judgements, classes, markdown.state_of_hosts(judgements), known, context)


def _with_problems(judgements: list[Judgement], hosts: t.Iterable[str], problems: t.Mapping[str, str]) -> list[Judgement]:
    """With the reason of what was not measured, and a judgement for each host that has none."""
    known = [replace(one, reason=plain(problems[one.host], 500)) if one.state == NOT_MEASURED and one.host in problems else one for one in judgements]
    nothing = Requirement("measurement", MEASURED, None, None, None, None, None, True, None, 0.95, "")
    missing = sorted(set(hosts) - {one.host for one in judgements})
    reason = "nothing was measured on this host"
    return known + [Judgement(host, "", nothing, NOT_MEASURED, None, None, None, 0, plain(problems.get(host, reason), 500)) for host in missing]


def write(campaign: Path, found: Outcome, key: str) -> tuple[dict[str, Path], list[str]]:
    """Every file by its format, and the folder of the certificates.

    :param key: that signs them; empty for none.
    :returns: also why they are not signed, as sentences.
    """
    folder = campaign / ACCEPT_FOLDER
    serials = {key: serial for key, (serial, _model) in found.drives.items()}
    contents = {
        "json": json.dumps({"when": found.context.when, "judgements": [asdict(one) for one in found.judgements]}, indent=1) + "\n",
        "md": markdown.text(found.judgements, found.classes, serials),
        "xml": junit.text(found.judgements, found.context.when),
        "prom": metrics.text(found.judgements, campaign.name),
    }
    for name, content in contents.items():
        with explained(folder, f"writing acceptance.{name}"):
            folder.mkdir(exist_ok=True)
            write_text(folder / f"acceptance.{name}", content)
    written = certificate.write(folder, found.judgements, found.context)
    problems: list[str] = []
    for path in written if key else ():
        problem = signature.sign(path, key)
        if problem:
            problems.append(problem)
            # The others would fail for the same reason.
            break
    return {**{name: folder / f"acceptance.{name}" for name in contents}, "certificates": folder / certificate.CERTIFICATES_FOLDER}, problems


def since(certificates: Path, earlier: str, allowed_signers: str, identity: str) -> tuple[dict[str, list[Change]], list[str]]:
    """What has changed, by the name of the drive or host, and what could not be compared, as sentences.

    :param earlier: a folder of certificates, or the campaign with it.
    :raises BadInput: if it has none.
    """
    folders = [Path(earlier).expanduser() / part for part in (f"{ACCEPT_FOLDER}/{certificate.CERTIFICATES_FOLDER}", certificate.CERTIFICATES_FOLDER, ".")]
    folder = next((one for one in folders if any(one.glob("*.json"))), None)
    if folder is None:
        raise BadInput(f"There are no certificates in {plain(earlier)}: set accept_earlier to the folder of an earlier campaign or of its certificates.")
    changes: dict[str, list[Change]] = {}
    problems = []
    for path in sorted(certificates.glob("*.json")):
        before = folder / path.name
        if not before.is_file():
            continue
        problem = signature.verify(before, allowed_signers, identity) if allowed_signers else None
        try:
            old, new = certificate.read(before), certificate.read(path)
        except StorageError as error:
            problem = problem or error.message
        if problem:
            problems.append(problem)
        else:
            changes[f"{new.kind} {new.name}"] = [one for one in compare(old, new) if one.state != SAME]
    return changes, problems
