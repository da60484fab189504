# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot state in NetworkManager: the MTU of the profile that is active on the interface.

Set with ``nmcli connection modify UUID 802-3-ethernet.mtu N`` and not with community.general.nmcli: that module writes its own
defaults along with the MTU into a profile that it did not make (``connection.autoconnect``, ``ipv4.never-default``,
``ipv4.ignore-auto-dns``, ``ipv4.may-fail``, ``connection.interface-name``, the mode of a bond, the spanning tree of a bridge),
and a storage network without a default route would get one. A changed profile is used when it is activated next: at boot.

Sources: nmcli(1), nm-settings-nmcli(5).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange, BootProvider, MtuSource, obstacle_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link

_NETPLAN = re.compile(r"/netplan-(.+?)(?:\.nmconnection)?$")
_PROPERTIES = {"infiniband": "infiniband.mtu", "802-11-wireless": "802-11-wireless.mtu"}
_ETHERNET = "802-3-ethernet.mtu"
_UUID = re.compile(r"^[0-9a-f-]{36}\Z")


@frozen
class Profile:
    """What is active on an interface.

    :param netplan: the definition it was made of; empty if it was not made by netplan.
    """

    uuid: str
    name: str
    kind: str
    file: str

    @property
    def netplan(self) -> str:
        match = _NETPLAN.search(self.file)
        return match.group(1) if match else ""


def active_profiles(runner: Runner) -> dict[str, Profile]:
    """The profiles that are active, by interface, without those that NetworkManager made up for what others have configured."""
    if not runner.has("nmcli"):
        return {}
    completed = runner.run(["nmcli", "--terse", "--fields", "DEVICE,STATE,CON-UUID", "device", "status"], ok=None, item="nmcli")
    if completed.rc != 0:
        # It is installed and does not run.
        return {}
    uuids = {words[2]: words[0] for words in _rows(completed.stdout, 3) if words[1].startswith("connected") and "externally" not in words[1] and words[2]}
    if not uuids:
        return {}
    listed = runner.run(["nmcli", "--terse", "--fields", "UUID,TYPE,FILENAME,NAME", "connection", "show"], item="nmcli").stdout
    return {uuids[words[0]]: Profile(words[0], words[3], words[1], words[2]) for words in _rows(listed, 4) if words[0] in uuids}


def _rows(text: str, count: int) -> list[list[str]]:
    """The rows of terse output: a colon between fields, and a backslash before a colon or backslash in one (nmcli(1), --escape)."""
    rows = [[re.sub(r"\\(.)", r"\1", word) for word in re.split(r"(?<!\\):", line)] for line in text.splitlines()]
    return [row for row in rows if len(row) == count]


class NetworkManager(BootProvider):
    name = "networkmanager"
    title = "NetworkManager"

    def places(self, requested: t.Sequence[Link], *, insist: bool = False) -> dict[str, MtuSource]:  # noqa: ARG002
        """Every interface with an active profile that netplan did not make."""
        profiles = active_profiles(self.runner) if requested else {}
        return {link.name: self._place(link, profiles[link.name]) for link in requested if link.name in profiles and not profiles[link.name].netplan}

    def _place(self, link: Link, profile: Profile) -> MtuSource:
        item = _PROPERTIES.get(profile.kind, _ETHERNET)
        found = self.runner.run(["nmcli", "--terse", "--get-values", item, "connection", "show", profile.uuid], item=link.name).stdout.strip()
        obstacle = ""
        if not _UUID.match(profile.uuid):
            obstacle = f"{link.name}: its profile in NetworkManager has the invalid UUID {profile.uuid!r}."
        elif profile.file.startswith("/run/"):
            obstacle = f"{link.name}: its profile {profile.name} in NetworkManager is stored in {profile.file} and is lost at boot: save it first."
        elif profile.file.startswith("/"):
            obstacle = obstacle_of(link.name, profile.file, self.root)
        return MtuSource(
            self.name,
            link.name,
            int(found) if found.isdigit() and int(found) else None,
            {"where": f"the profile {profile.name} ({profile.uuid})", "uuid": profile.uuid, "property": item, "before": found or "auto"},
            obstacle=obstacle,
        )

    def change(self, place: MtuSource, mtu: int) -> BootChange:
        """One property of the profile."""
        modify = ("nmcli", "connection", "modify", place.details["uuid"], place.details["property"])
        before = place.details["before"]
        return BootChange(commands=((*modify, str(mtu)),), undo=((*modify, before if before.isdigit() else "0"),))
