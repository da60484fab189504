# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A description as the text of a file for an inventory: YAML with comments."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import DescribedEntry, DescribedVariable, Description
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import WIDTH, dump


def render(description: Description) -> str:
    """The file of one host."""
    head = [
        f"The caches of {description.host} as they were found. A run of cachefleet.storage.site with these variables changes nothing.",
        "What has its default is left out, unless describe_all_settings was set. What could not be described is in comments.",
    ]
    blocks = [_block(variable) for variable in description.variables]
    return "\n".join(["---", *_comments(head), "", *(block for block in blocks if block)])


def render_group(name: str, hosts: t.Sequence[str], contents: t.Mapping[str, t.Any]) -> str:
    """The file of a group of hosts that are alike.

    :param contents: the variables that are the same for all of them.
    """
    head = [
        f"What is the same on {len(hosts)} hosts with this controller: {', '.join(hosts)}.",
        f"To use it, add a group {name} with these hosts to the inventory, and remove the variables below from the files of the hosts, which take precedence.",
        "Controllers are identified by their number and volumes by their name, since serial numbers differ from host to host.",
    ]
    return "\n".join(["---", *_comments(head), "", *(dump({key: value}) for key, value in contents.items())])


def _block(variable: DescribedVariable) -> str:
    lines = _comments(variable.notes)
    if variable.commented:
        lines += _candidates(variable)
    elif variable.entries:
        lines += [f"{variable.name}:", *(line for entry in variable.entries for line in _entry(entry))]
    elif variable.value is not None:
        lines += dump({variable.name: variable.value}).splitlines()
    elif lines:
        # Without it the comment would say nothing of where it belongs.
        lines = [f"# {variable.name}:", *lines]
    return "\n".join([*lines, ""]) if lines else ""


def _entry(entry: DescribedEntry) -> list[str]:
    text = dump([entry.values])
    return [*(f"  {line}" for line in _comments(entry.notes)), *(f"  {line}" for line in text.splitlines())]


def _candidates(variable: DescribedVariable) -> list[str]:
    if not variable.entries:
        return []
    head = "Devices that could be measured. allow_data_loss: true is required for those whose contents may be destroyed."
    lines = [line for entry in variable.entries for line in (*_comments(entry.notes, "    "), *dump([entry.values]).splitlines())]
    return [f"# {head}", f"# {variable.name}:", *(f"#   {line}" for line in lines)]


def _comments(sentences: t.Iterable[str], indent: str = "") -> list[str]:
    """Each sentence as lines of a comment."""
    wrapped = (textwrap.wrap(sentence, WIDTH - 4 - len(indent), break_long_words=False, break_on_hyphens=False) for sentence in sentences)
    return [f"# {line}" for lines in wrapped for line in lines]
