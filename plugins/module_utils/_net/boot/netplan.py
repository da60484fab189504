# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot state in netplan: a file of its own that adds ``mtu`` to definitions that other files hold.

netplan reads all files in the order of their names and merges their values for one definition, so a file with nothing but ``mtu``
changes nothing else, and the user's files are never rewritten. A definition that matches several cards, or may (``match: {name: en*}``),
would give the MTU to all of them: there it goes into a ``.link`` file that names the card by its address (:mod:`networkd`). ``mtu`` of such
a definition wins over that, so it must not have one. ``netplan set`` would
rewrite whole files. ``netplan generate`` shows whether netplan takes the result, and writes below /run only.

Sources: netplan(5) "mtu", netplan-get(8), netplan-generate(8).
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange, BootProvider, MtuSource, file_change
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.networkd import NETPLAN, SystemdNetworkd, network_files
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.networkmanager import active_profiles

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link

FILE = "/etc/netplan/90-cachefleet-mtu.yaml"
_TYPES = ("ethernets", "vlans", "bonds", "bridges")
_HEADER = "# Written by cachefleet.storage.storage_network: change the inventory, not this file.\n"
_LINE = re.compile(r'^    "([^"]+)": \{mtu: (\d+)\}$')
_MATCH_NAME = re.compile(r"\bname:[ \t]*(\S[^\n,}]*)")
_HARMLESS = re.compile(r"^[A-Za-z0-9_.:@-]+\Z")


class Netplan(BootProvider):
    name = "netplan"
    title = "netplan"

    def places(self, requested: t.Sequence[Link], *, insist: bool = False) -> dict[str, MtuSource]:  # noqa: ARG002
        """Every interface whose ``.network`` file or NetworkManager profile was made by netplan."""
        if not requested or not self.runner.has("netplan"):
            return {}
        identities = self._identities()
        if not {link.name for link in requested} & set(identities):
            return {}
        text = read_file(self.root / FILE.lstrip("/"))
        return {link.name: self._place(link, identities, text) for link in requested if link.name in identities}

    def _identities(self) -> dict[str, str]:
        """The name of the definition of every interface that has one, which is that of the interface unless ``match`` is used."""
        found = {name: match.group(1) for name, file in network_files(self.runner, self.links).items() for match in [NETPLAN.match(file)] if match}
        for name, profile in active_profiles(self.runner).items():
            if profile.netplan:
                found[name] = profile.netplan
        return found

    def _place(self, link: Link, identities: t.Mapping[str, str], text: str) -> MtuSource:
        identity = identities[link.name]
        if not _HARMLESS.match(identity):
            return MtuSource(
                self.name, link.name, None, obstacle=f"{link.name}: the definition {identity} of netplan has a name that cannot be written safely."
            )
        kind = next((one for one in _TYPES if self._get(one, identity) != "null"), "")
        if not kind:
            return MtuSource(
                self.name,
                link.name,
                None,
                obstacle=f"{link.name} was configured by the definition {identity} of netplan, which is in no file any more: run netplan apply first.",
            )
        mtu = self._get(kind, identity, "mtu")
        match = self._get(kind, identity, "match") if kind == "ethernets" else "null"
        sharing = sorted(name for name, other in identities.items() if other == identity and name != link.name)
        if sharing or _matches_several(match):
            return self._own_place(link, identity, mtu, sharing, ours=identity in own_entries(text).get(kind, {}))
        unsure = kind == "ethernets" and "macaddress" not in match
        return MtuSource(
            self.name,
            link.name,
            int(mtu) if mtu.isdigit() else None,
            {"where": FILE, "path": FILE, "before": text, "kind": kind, "identity": identity, "own": own_entries(text).get(kind, {}).get(identity)},
            concern=(
                f"{link.name}: its definition {identity} in netplan does not name the card by match: {{macaddress: {link.hardware_mac}}}, "
                "and without that networkd may not set the MTU at boot (netplan(5), mtu)."
                if unsure
                else ""
            ),
        )

    def _own_place(self, link: Link, identity: str, mtu: str, sharing: t.Sequence[str], *, ours: bool) -> MtuSource:
        """Of a card whose definition is for several: the ``.link`` file of that card, if the definition leaves the MTU alone.

        :param ours: whether an earlier run wrote the MTU of the definition, for all of them: never as it should be.
        """
        if not mtu.isdigit():
            place = SystemdNetworkd(self.runner, self.links, self.root).beside_link_file(link, f"The definition {identity} of netplan", sharing)
            # For networkd it belongs to netplan.
            return replace(place, provider=self.name)
        others = f"of {', '.join(sharing)} too" if sharing else "of every card that it matches"
        return MtuSource(
            self.name,
            link.name,
            None if ours else int(mtu),
            {"where": f"the definition {identity} of netplan"},
            obstacle=(
                f"{link.name}: its definition {identity} in netplan sets the MTU {others} ({mtu}): give {link.name} a definition of its own with"
                f" match: {{macaddress: {link.hardware_mac}}}, or remove mtu from {identity} (also in {FILE}) and run netplan apply."
            ),
        )

    def _get(self, kind: str, identity: str, *more: str) -> str:
        path = ".".join((kind, identity.replace(".", "\\."), *more))
        return self.runner.run(["netplan", "get", path], item=identity).stdout.strip()

    def change(self, place: MtuSource, mtu: int) -> BootChange:
        """One more line in the file. Several changes of one run are made one after the other: see :func:`boot.merge`."""
        details = place.details
        if details["kind"] == "link":
            return SystemdNetworkd(self.runner, self.links, self.root).change(place, mtu)
        after = with_entry(details["before"], details["kind"], details["identity"], mtu)
        # netplan complains about files that others can read.
        return BootChange(files=(file_change(FILE, details["before"], after, 0o600),), commands=(("netplan", "generate"),), undo=(("netplan", "generate"),))


def _matches_several(match: str) -> bool:
    """Whether ``match`` of a definition, as ``netplan get`` prints it, may meet cards that are not there at the moment (netplan(5), "match")."""
    if match in ("null", "") or "macaddress" in match:
        return False
    name = _MATCH_NAME.search(match)
    return name is None or re.search(r"[*?\[]", name.group(1)) is not None


def own_entries(text: str) -> dict[str, dict[str, int]]:
    """The contents of the file: MTU by kind and definition."""
    found: dict[str, dict[str, int]] = {}
    kind = ""
    for line in text.splitlines():
        if line.startswith("  ") and line.endswith(":") and line.strip()[:-1] in _TYPES:
            kind = line.strip()[:-1]
        match = _LINE.match(line)
        if match and kind:
            found.setdefault(kind, {})[match.group(1)] = int(match.group(2))
    return found


def with_entry(text: str, kind: str, identity: str, mtu: int) -> str:
    """The file with one MTU set; all others stay."""
    entries = own_entries(text)
    entries.setdefault(kind, {})[identity] = mtu
    lines = [
        f"  {one}:\n" + "".join(f"    {json.dumps(name)}: {{mtu: {value}}}\n" for name, value in sorted(entries[one].items()))
        for one in _TYPES
        if one in entries
    ]
    return f"{_HEADER}network:\n  version: 2\n{''.join(lines)}"
