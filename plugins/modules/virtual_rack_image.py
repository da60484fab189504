#!/usr/bin/python
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: virtual_rack_image
short_description: "Step of the role virtual_rack: build the root filesystem image of virtual rack machines"
version_added: 1.0.0
description:
  - Builds a Debian root filesystem with all tools that this collection needs, with its kernel and a small initramfs, and stores it
    as one qcow2 file that any number of machines can share.
  - The name of an image contains a hash of its recipe. The same recipe is built only once; a changed recipe creates a new image.
  - Host name, SSH key and addresses are not part of an image.
  - Packages are downloaded from the mirror that C(apt) on this host uses for the release, or from the default mirror of C(mmdebstrap) if the
    host runs another distribution.
  - Building needs the commands C(mmdebstrap), C(mke2fs) and C(qemu-img), and either root or a user with subordinate user and group IDs.
options:
  cache_dir:
    description: Folder in which images are kept.
    type: path
    default: ~/.cache/cachefleet
  suite:
    description: Debian release of the guests.
    type: str
    default: bookworm
  packages:
    description:
      - All packages of the guests in addition to the essential ones.
      - The list must contain a kernel, C(initramfs-tools), C(systemd-sysv), C(udev), C(openssh-server), C(iproute2) and C(python3).
      - Defaults to the packages that the roles of this collection need.
    type: list
    elements: str
  extra_packages:
    description: Packages in addition to O(packages).
    type: list
    elements: str
    default: []
  size:
    description: Size of the root filesystem, with an optional suffix such as C(M) or C(G).
    type: str
    default: 2500M
  mirror:
    description: Mirror URLs or apt source lines to use instead of those of this host. They are not part of the hash of the recipe.
    type: list
    elements: str
    default: []
  scratch_dir:
    description: Folder with 3 GiB of free space in which the image is built.
    type: path
    default: /var/tmp
  state:
    description: Whether the image of this recipe exists. Machines need their image as long as they exist.
    type: str
    choices: [present, absent]
    default: present
author:
  - the cachefleet.storage authors (@cachefleet)
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
  - cachefleet.storage._attributes.layer
"""

EXAMPLES = r"""
- name: Ensure the image of the machines is built
  cachefleet.storage.virtual_rack_image:
  register: built

- name: Ensure an image with an additional package is built, with progress
  cachefleet.storage.virtual_rack_image:
    extra_packages: [tcpdump]
  async: 1800
  poll: 10
  register: built
"""

RETURN = r"""
image:
  description: The image, for use in O(cachefleet.storage.virtual_rack#module:image).
  returned: success
  type: dict
  contains:
    digest: {description: Hash of the recipe., type: str}
    suite: {description: Debian release., type: str, sample: bookworm}
    directory: {description: Folder of the image., type: str}
    base: {description: The root filesystem as a qcow2 file., type: str}
    kernel: {description: The kernel., type: str}
    initrd: {description: The initramfs., type: str}
    host_key: {description: Public SSH host key of the machines., type: str}
seconds:
  description: Build time of the image in seconds, 0 if the image does not exist.
  returned: success
  type: float
actions:
  description: The actions that were performed, or would be performed in check mode, one sentence each.
  returned: success
  type: list
  elements: str
"""

import pathlib

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.image import ImageLayer, ImageSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.recipe import recipe_from_options

ARGUMENT_SPEC = {
    "cache_dir": {"type": "path", "default": "~/.cache/cachefleet"},
    "suite": {"type": "str", "default": "bookworm"},
    "packages": {"type": "list", "elements": "str"},
    "extra_packages": {"type": "list", "elements": "str", "default": []},
    "size": {"type": "str", "default": "2500M"},
    "mirror": {"type": "list", "elements": "str", "default": []},
    "scratch_dir": {"type": "path", "default": "/var/tmp"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    run_layer(module, lambda: _make_layer(module.params))


def _make_layer(options):
    spec = ImageSpec(recipe_from_options(options), options["state"] == "present")
    return ImageLayer(Runner(), spec, pathlib.Path(options["cache_dir"]), mirror=options["mirror"], scratch=pathlib.Path(options["scratch_dir"]))


if __name__ == "__main__":
    main()
