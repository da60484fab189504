# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sphinx: the guides in Markdown (myst-parser), and the pages that antsibull-docs writes of modules, roles and plugins."""

from __future__ import annotations

import re
import typing as t

from docutils import nodes

if t.TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "cachefleet.storage"
copyright = "2026 the cachefleet.storage authors"  # the name that Sphinx reads
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "sphinx_ansible_theme"
html_title = project
html_show_sphinx = False
html_theme_options = {"display_version": False}
highlight_language = "text"
myst_heading_anchors = 4

#: Pages of Ansible itself. The site is built without a network, so that they are not read from its inventory of labels.
ANSIBLE = "https://docs.ansible.com/ansible/latest"
LABELS = {
    "action_plugins": f"{ANSIBLE}/plugins/action.html",
    "ansible_configuration_settings": f"{ANSIBLE}/reference_appendices/config.html",
    "callback_plugins": f"{ANSIBLE}/plugins/callback.html",
    "common_return_values": f"{ANSIBLE}/reference_appendices/common_return_values.html",
}
_MODULE = re.compile(r"ansible_collections\.((?:ansible|community)\.\w+)\.(\w+_(?:module|lookup|filter|callback))\Z")


def link_to_ansible(_app: Sphinx, _env: t.Any, node: t.Any, content: t.Any) -> nodes.reference | None:
    """A label of Ansible, or of a module of its collections; every other label that does not exist remains an error."""
    label = node.get("reftarget", "")
    module = _MODULE.match(label)
    address = f"{ANSIBLE}/collections/{module[1].replace('.', '/')}/{module[2]}.html" if module else LABELS.get(label)
    return None if address is None else nodes.reference("", "", content, refuri=address, internal=False)


def setup(app: Sphinx) -> None:
    app.connect("missing-reference", link_to_ansible)
