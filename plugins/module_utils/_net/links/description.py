# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MTUs of interfaces as ``storage_network_links``."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Values, Variable, objection_of, prove
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links, read_links
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.layer import LinkLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import DEFAULT_MTU, LinkState
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import read_specs

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Check
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

VARIABLE = "storage_network_links"
#: Kinds that the configuration of the network makes, and those whose members have their MTU.
_KINDS, _HANDING_DOWN = ("", "vlan", "bond", "bridge", "team"), ("bond", "team")


def describe(runner: Runner, root: Path = Path("/"), *, every: bool = False) -> Variable:
    """The interfaces whose MTU is not that of every interface; with ``every`` all that a configuration makes."""
    links = read_links(runner, root)
    chosen = [link for link in links if _is_configured(link, links) and (every or link.mtu != DEFAULT_MTU)]
    notes: tuple[str, ...] = ()
    try:
        state = _read(runner, chosen, root, persistent=True)
        lasting = True
    except StorageError as error:
        state = _read(runner, chosen, root, persistent=False)
        lasting = False
        notes = (f"What the MTU of interfaces is after a reboot could not be read: {error.message}",)
    entries, left_out = prove([_candidate(link, state, lasting) for link in chosen], _checker(runner, state, root))
    return Variable(VARIABLE, entries, notes=(*notes, *left_out))


def _is_configured(link: Link, links: Links) -> bool:
    if link.kind not in _KINDS or link.name == "lo":
        return False
    return link.master is None or link.master not in links or links[link.master].kind not in _HANDING_DOWN


def _read(runner: Runner, links: t.Sequence[Link], root: Path, *, persistent: bool) -> LinkState:
    return LinkLayer(runner, read_specs([{"interface": link.name, "mtu": link.mtu, "persistent": persistent} for link in links]), root).read()


def _candidate(link: Link, state: LinkState, lasting: bool) -> Candidate:
    form = {"interface": link.name, "mtu": link.mtu}
    notes = ("The connection of Ansible depends on it: a run does not change it back without allow_management: true.",) if link.name in state.carrying else ()
    # Where nothing sets the MTU at boot, it is one of now only.
    return Candidate(f"The interface {link.name}", ((form,) if lasting else ()) + ({**form, "persistent": False},), notes=notes)


def _checker(runner: Runner, state: LinkState, root: Path) -> Check:
    def check(entries: t.Sequence[Values]) -> t.Any:
        return objection_of(lambda: LinkLayer(runner, read_specs(entries), root), state)

    return check
