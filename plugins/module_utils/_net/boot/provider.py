# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every provider of boot state, and which of them manages an interface."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.ifupdown import Ifupdown
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import UNMANAGED, BootProvider, MtuSource
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.netplan import Netplan
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.networkd import SystemdNetworkd
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.networkmanager import NetworkManager
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.wicked import Wicked

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links

AUTO = "auto"
PROVIDERS: dict[str, type[BootProvider]] = {provider.name: provider for provider in (SystemdNetworkd, Netplan, NetworkManager, Ifupdown, Wicked)}
CHOICES = (AUTO, *PROVIDERS)


class _OneAnswer:
    """A runner that runs each command once: several providers run networkctl and nmcli for the same moment."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.has = runner.has
        self._answers: dict[tuple[str, ...], t.Any] = {}

    def run(self, argv: t.Sequence[str], **options: t.Any) -> t.Any:
        words = tuple(argv)
        if words not in self._answers:
            self._answers[words] = self.runner.run(argv, **options)
        return self._answers[words]


def find_places(runner: Runner, links: Links, requested: t.Mapping[str, str], root: Path = Path("/")) -> dict[str, MtuSource]:
    """Where the MTU of each interface comes from at boot. What cannot be determined has an ``obstacle`` and no provider.

    :param requested: the provider that the user requests, or :data:`AUTO`, by interface.
    """
    by_provider: dict[str, list[Link]] = {}
    for name, choice in requested.items():
        for one in PROVIDERS if choice == AUTO else (choice,):
            by_provider.setdefault(one, []).append(links[name])
    asking = t.cast("Runner", _OneAnswer(runner))
    found: dict[str, list[MtuSource]] = {name: [] for name in requested}
    for name, provider in PROVIDERS.items():
        named = [link for link in by_provider.get(name, []) if requested[link.name] == name]
        for part, insist in ((named, True), ([link for link in by_provider.get(name, []) if link not in named], False)):
            for interface, place in (provider(asking, links, root).places(part, insist=insist) if part else {}).items():
                found[interface].append(place)
    return {name: _only(name, places, requested[name]) for name, places in found.items()}


def _only(name: str, places: t.Sequence[MtuSource], choice: str) -> MtuSource:
    if len(places) == 1:
        return places[0]
    if places:
        titles = " and ".join(PROVIDERS[place.provider].title for place in places)
        return MtuSource(
            "", name, None, obstacle=f"{name} is configured by {titles}: name the one that counts at boot in provider, or remove it from the others."
        )
    if choice != AUTO:
        return MtuSource("", name, None, obstacle=f"{name} is not configured by {PROVIDERS[choice].title} on this host: name another provider, or auto.")
    titles = ", ".join(provider.title for provider in PROVIDERS.values())
    return MtuSource(
        "",
        name,
        None,
        {UNMANAGED: True},
        obstacle=(
            f"{name} is configured at boot by none of {titles}: set provider: systemd_networkd for a .link file, which udev applies, "
            "or persistent: false to leave the state at boot alone."
        ),
    )
