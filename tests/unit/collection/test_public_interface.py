# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every public name is kept, or leads to what replaces it.

The list is ``tests/unit/data/public_interface.txt``; ``python tests/unit/collection/test_public_interface.py`` prints the present one.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[3]
LIST = TOP / "tests/unit/data/public_interface.txt"
RUNTIME = yaml.safe_load((TOP / "meta/runtime.yml").read_text())


def _block(text, name):
    found = re.search(rf'^{name} = r?"""(.*?)"""', text, flags=re.MULTILINE | re.DOTALL)
    return (yaml.safe_load(found.group(1)) if found else None) or {}


def _fragments(documentation):
    names = documentation.get("extends_documentation_fragment") or []
    for name in [names] if isinstance(names, str) else names:
        if name.startswith("cachefleet.storage."):
            plugin, _dot, part = name.removeprefix("cachefleet.storage.").partition(".")
            parts = importlib.import_module(f"ansible_collections.cachefleet.storage.plugins.doc_fragments.{plugin}").ModuleDocFragment
            yield yaml.safe_load(getattr(parts, (part or "documentation").upper()))


def _names(prefix, entries, below):
    for name, entry in (entries or {}).items():
        for one in (name, *(entry.get("aliases") or [])):
            yield f"{prefix}.{one}"
            yield from _names(f"{prefix}.{one}", entry.get(below), below)


def _is_step(documentation):
    """Whether a plugin is for the roles and playbooks of this collection only, as its first line says."""
    return documentation["short_description"].startswith("Step of ")


def interface():
    """Every name that a user may write or read, with where it stands."""
    found: set[str] = set()
    for path in (TOP / "plugins/modules").glob("*.py"):
        text = path.read_text()
        documentation = _block(text, "DOCUMENTATION")
        if _is_step(documentation):
            continue
        found.add(f"module {path.stem}")
        for part in (documentation, *_fragments(documentation)):
            found.update(_names(f"option {path.stem}", part.get("options"), "suboptions"))
        found.update(_names(f"return {path.stem}", _block(text, "RETURN"), "contains"))
    for path in (TOP / "roles").iterdir():
        found.add(f"role {path.name}")
        for point, entry in yaml.safe_load((path / "meta/argument_specs.yml").read_text())["argument_specs"].items():
            found.update(_names(f"variable {path.name}/{point}", entry.get("options"), "options"))
    found.update(f"playbook {path.stem}" for path in (TOP / "playbooks").glob("*.yml"))
    found.update(f"callback {path.stem}" for path in (TOP / "plugins/callback").glob("*.py"))
    return found


def _redirected(name, now):
    kind, _space, rest = name.partition(" ")
    module, dot, below = rest.partition(".")
    leads = (RUNTIME.get("plugin_routing", {}).get("modules", {}).get(module) or {}).get("redirect")
    return kind in ("module", "option", "return") and leads is not None and f"{kind} {leads.rpartition('.')[2]}{dot}{below}" in now


def test_public_names_are_kept_or_redirected():
    now = interface()
    lost = [name for name in LIST.read_text().splitlines() if not name.startswith("#") and name not in now and not _redirected(name, now)]
    assert not lost, "\n".join(lost)


def test_plugins_that_are_steps_of_a_role_are_used_by_it_and_not_promised():
    steps = []
    for path in (*(TOP / "plugins/modules").glob("*.py"), *(TOP / "plugins/filter").glob("*.yml")):
        text = path.read_text()
        documentation = _block(text, "DOCUMENTATION") if path.suffix == ".py" else yaml.safe_load(text)["DOCUMENTATION"]
        if _is_step(documentation):
            steps.append(path.stem)
        else:
            assert path.suffix == ".py", f"{path.stem}: filters are steps"
    used = "".join(
        path.read_text() for folder in ("roles", "playbooks", "plugins/action") for path in (TOP / folder).rglob("*") if path.suffix in (".yml", ".py")
    )
    assert [name for name in steps if not re.search(rf"\b{name}\b", used)] == []
    promised = set(re.findall(r"`(\w+)`", (TOP / "README.md").read_text())) - {path.stem for path in (TOP / "playbooks").iterdir()}
    assert promised.isdisjoint(steps)
    assert len(list((TOP / "plugins/modules").glob("*.py"))) - len(steps) <= 27


if __name__ == "__main__":
    print("\n".join(sorted(interface())))
