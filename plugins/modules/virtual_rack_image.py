#!/usr/bin/python
# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: virtual_rack_image
short_description: Build and keep the root filesystem of virtual rack machines
version_added: 0.1.0
description:
  - Makes a Debian root filesystem that carries every tool of this collection, with its kernel and a small initramfs, and keeps it
    as one qcow2 file that any number of machines share.
  - An image is named by a hash of its recipe. The same recipe is built once, and a changed one is built beside the old one.
  - Hostname, ssh key and addresses are not part of an image.
  - Packages come from the mirror that C(apt) on this host uses for the release, or from the default of C(mmdebstrap) where the host is
    another distribution.
  - Building needs the commands C(mmdebstrap), C(mke2fs) and C(qemu-img), and either root or a user with subordinate user and group ids.
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
      - Every package of the guests beyond the essential ones.
      - It must contain a kernel, C(initramfs-tools), C(systemd-sysv), C(udev), C(openssh-server), C(iproute2) and C(python3).
      - Left out, it is a complete set for all roles of this collection.
    type: list
    elements: str
  extra_packages:
    description: Packages beyond O(packages).
    type: list
    elements: str
    default: []
  size:
    description: Size of the root filesystem, with an optional suffix such as C(M) or C(G).
    type: str
    default: 2500M
  mirror:
    description: Mirror addresses or apt source lines to use instead of those of this host. They are not part of the recipe's hash.
    type: list
    elements: str
    default: []
  scratch_dir:
    description: Folder with 3 GiB of free space in which the image is put together.
    type: path
    default: /var/tmp
  state:
    description: Whether the image of this recipe shall be there. Machines that were made from an image need it for as long as they exist.
    type: str
    choices: [present, absent]
    default: present
author:
  - the cachefleet.storage authors (@cachefleet)
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
extends_documentation_fragment:
  - cachefleet.storage._attributes
  - cachefleet.storage._attributes.actiongroup_storage
"""

EXAMPLES = r"""
- name: Have an image for the machines of the rack
  cachefleet.storage.virtual_rack_image:
  register: built

- name: The same with one more tool in the guests, showing life while it is built
  cachefleet.storage.virtual_rack_image:
    extra_packages: [tcpdump]
  async: 1800
  poll: 10
  register: built
"""

RETURN = r"""
image:
  description: The image, as O(cachefleet.storage.virtual_rack#module:image) takes it.
  returned: success
  type: dict
  contains:
    digest: {description: Hash of the recipe., type: str}
    suite: {description: Debian release., type: str, sample: bookworm}
    directory: {description: Folder of the image., type: str}
    base: {description: The root filesystem as a qcow2 file., type: str}
    kernel: {description: The kernel., type: str}
    initrd: {description: The initramfs., type: str}
    host_key: {description: Public ssh host key of the machines., type: str}
seconds:
  description: How long the image took to build when it was built; 0 if it is not there.
  returned: success
  type: float
actions:
  description: What was done, or would be done in check mode, as sentences.
  returned: success
  type: list
  elements: str
"""

import pathlib

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
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
    options = module.params
    try:
        recipe = recipe_from_options(options)
        layer = ImageLayer(Runner(), pathlib.Path(options["cache_dir"]), recipe, mirror=options["mirror"], scratch=pathlib.Path(options["scratch_dir"]))
        outcome = converge(layer, ImageSpec(recipe, options["state"] == "present"), check_mode=module.check_mode)
    except StorageError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**outcome.as_result(), image=layer.as_result(), seconds=outcome.present.seconds)


if __name__ == "__main__":
    main()
