# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables as YAML that Ansible reads and never evaluates: the one dumper of all YAML that is written or printed.

Ansible evaluates a text of a file of variables as a template if it contains a delimiter of Jinja2, and its first line can define others
(``#jinja2:variable_start_string:'[['``). Therefore no delimiters are searched for: whatever is not made of harmless characters only is
tagged ``!unsafe``.
"""

from __future__ import annotations

import re
import typing as t

import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated

WIDTH = 120
#: What names, paths, sizes, modes and patterns of devices are made of. None of these characters begins a template or a line of its own.
_HARMLESS = re.compile(r"[A-Za-z0-9 _./:,@%+=()*~-]*\Z")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_. -]{0,199}\Z")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: t.Any) -> bool:  # noqa: ARG002
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Lists are indented below their key, as ansible-lint wants it."""
        return super().increase_indent(flow, False)


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    if _HARMLESS.match(value):
        return dumper.represent_str(value)
    # Between single quotes PyYAML writes the line breaks of YAML 1.1 as they are, and one of them is read as a blank.
    return dumper.represent_scalar("!unsafe", value, style="'" if value.isprintable() else '"')


def _mapping(dumper: _Dumper, value: dict[str, t.Any]) -> yaml.MappingNode:
    for key in value:
        if not isinstance(key, str) or not _KEY.match(key):
            raise BadInput(f"{abbreviated(key)} cannot be a key of a file of variables: use letters, digits, '_', '.' and '-'.")
    return dumper.represent_dict(value.items())


_Dumper.add_representer(str, _text)
_Dumper.add_representer(dict, _mapping)


def dump(value: t.Any) -> str:
    """Plain values as YAML; keys keep their order.

    :raises BadInput: for a key that is not made of harmless characters.
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=False)


def plain_of(value: t.Any) -> t.Any:
    """Values without the classes by which Ansible marks where they came from, which no dumper knows.

    Those of ansible-core 2.16 to 2.18 return themselves from ``str()`` and ``encode()``: only the methods of ``str`` itself make a copy.
    """
    if isinstance(value, t.Mapping):
        return {plain_of(str(key)): plain_of(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_of(one) for one in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return float(value) if isinstance(value, float) else int(value)
    text = value if isinstance(value, str) else str(value)
    return bytes.decode(str.encode(text, "utf-8", "surrogatepass"), "utf-8", "surrogatepass")
