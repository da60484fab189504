# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the root filesystem of a rack machine is made of, as plain data, and the hash that names it.

Everything that ends up in an image is in a :class:`Recipe` or in a constant of this file, so that the hash covers it. What
differs from machine to machine (hostname, ssh key, addresses) is not in the image: the machine reads it from its kernel
command line, and one image serves every machine of every rack.
"""

from __future__ import annotations

import hashlib
import json
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size, parse_size

#: Debian policy 5.6.7; also what a release may be called.
_PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")

#: Enough to be managed by Ansible and to carry every cache layer that a virtual machine can have.
DEFAULT_PACKAGES = (
    "aoetools",
    "bcache-tools",
    "btrfs-progs",
    "dbus",
    "dmsetup",
    "drbd-utils",
    "e2fsprogs",
    "fdisk",
    "fio",
    "hdparm",
    "ifupdown",
    "initramfs-tools",
    "iproute2",
    "iputils-ping",
    "kmod",
    "linux-image-amd64",
    "lvm2",
    "mdadm",
    "nbd-client",
    "nbd-server",
    "netplan.io",
    "network-manager",
    "nvme-cli",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sdparm",
    "smartmontools",
    "sudo",
    "systemd",
    "systemd-sysv",
    "thin-provisioning-tools",
    "udev",
    "util-linux",
    "vblade",
    "xfsprogs",
    "xz-utils",
)

#: Documentation, translations and drivers that a rack machine has no use for: a third of the unpacked size.
EXCLUDED_PATHS = (
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    *(
        f"{folder}/modules/*/kernel/{drivers}/*"
        # Since Debian 13 packages install to /usr/lib.
        for folder in ("/lib", "/usr/lib")
        for drivers in (
            "sound",
            "drivers/gpu",
            "drivers/media",
            "drivers/staging",
            "drivers/bluetooth",
            "drivers/net/wireless",
            "net/bluetooth",
            "net/mac80211",
        )
    ),
)

#: Units that cost boot time under software emulation and that a machine on a rack of its own has no use for.
MASKED_UNITS = (
    "NetworkManager-dispatcher.service",  # the rack's interfaces belong to systemd-networkd; who tries another tool starts it
    "NetworkManager-wait-online.service",
    "NetworkManager.service",
    "aoe-discover.service",  # the role that configures AoE does it
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "dpkg-db-backup.timer",
    "drbd.service",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fio.service",
    "fstrim.timer",
    "getty-static.service",
    "getty@tty1.service",
    "mdcheck_continue.timer",
    "mdcheck_start.timer",
    "mdmonitor-oneshot.timer",
    "mdmonitor.service",  # would try to mail
    "modprobe@drm.service",
    "nbd-server.service",
    "networking.service",
    "nvmefc-boot-connections.service",
    "nvmf-autoconnect.service",
    "proc-sys-fs-binfmt_misc.automount",
    "serial-getty@ttyS0.service",
    "smartmontools.service",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-tracing.mount",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-binfmt.service",
    "systemd-firstboot.service",
    "systemd-journal-flush.service",
    "systemd-machine-id-commit.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-repart.service",
    "systemd-sysusers.service",
    "systemd-tmpfiles-clean.timer",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
    "uuidd.socket",
    "vblade.service",
)

#: What the kernel needs to find and mount the root disk and to have its network interfaces from the start.
EARLY_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4")

#: Loaded by every Python of the guest. Ansible sends its modules as archives, of which Python compiles every file in every process: with
#: software emulation that takes longer than what most modules do. In memory, so that a power cut cannot damage it.
KEEP_BYTECODE = """\
import _imp
import marshal
import os
import zipimport


def recall(path, source, compile_source=zipimport._compile_source):
    kept = "/run/rack-bytecode/%s" % _imp.source_hash(0, source).hex()
    try:
        with open(kept, "rb") as file:
            code = marshal.load(file)
        _imp._fix_co_filename(code, path)
        return code
    except OSError:
        pass
    code = compile_source(path, source)
    try:
        os.makedirs(os.path.dirname(kept), 0o700, exist_ok=True)
        beside = "%s.%d" % (kept, os.getpid())
        with open(beside, "wb") as file:
            marshal.dump(code, file)
        os.rename(beside, kept)
    except OSError:
        pass
    return code


zipimport._compile_source = recall
"""

#: Files of the guest: path, mode, contents.
GUEST_FILES: tuple[tuple[str, str, str], ...] = (
    ("/etc/fstab", "0644", "/dev/vda / ext4 defaults,noatime 0 0\n"),
    ("/etc/systemd/journald.conf.d/rack.conf", "0644", "[Journal]\nStorage=volatile\n"),
    ("/usr/lib/python3/dist-packages/rack_bytecode.py", "0644", KEEP_BYTECODE),
    ("/usr/lib/python3/dist-packages/rack_bytecode.pth", "0644", "import rack_bytecode\n"),
    # No mail system: without a program of its own mdadm --monitor ends with an error.
    ("/etc/mdadm/mdadm.conf.d/rack.conf", "0644", "PROGRAM /bin/true\n"),
    # Modules that only cost time in a virtual machine.
    ("/etc/modprobe.d/rack.conf", "0644", "".join(f"blacklist {name}\n" for name in ("kvm_amd", "kvm_intel", "pcspkr", "psmouse", "iTCO_wdt", "lpc_ich"))),
    (
        "/etc/ssh/sshd_config.d/rack.conf",
        "0644",
        "PermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\n"
        "UseDNS no\n"
        "MaxSessions 100\n"
        "AuthorizedKeysCommand /usr/local/sbin/rack-authorized-keys\n"
        "AuthorizedKeysCommandUser nobody\n",
    ),
    # Reading its configuration and keys twice costs each boot half a second.
    ("/etc/systemd/system/ssh.service.d/rack.conf", "0644", "[Service]\nExecStartPre=\n"),
    (
        "/usr/local/sbin/rack-authorized-keys",
        "0755",
        "#!/bin/sh\n"
        "# The key that may log in stands on the kernel command line as rack.key=TYPE:BASE64.\n"
        "read -r line </proc/cmdline\n"
        "for word in $line; do\n"
        '  case $word in rack.key=*) word=${word#rack.key=}; echo "${word%%:*} ${word#*:}" ;; esac\n'
        "done\n",
    ),
    (
        "/usr/local/sbin/rack-network",
        "0755",
        "#!/bin/sh\n"
        "# Addresses stand on the kernel command line as rack.address=INTERFACE:ADDRESS/PREFIX.\n"
        "ip link set lo up\n"
        "read -r line </proc/cmdline\n"
        "for word in $line; do\n"
        "  case $word in\n"
        "    rack.address=*) word=${word#rack.address=}\n"
        '      ip address replace "${word#*:}" dev "${word%%:*}"; ip link set "${word%%:*}" up ;;\n'
        "    systemd.hostname=*)\n"
        "      printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n::1 localhost\\n' \"${word#*=}\" >/etc/hosts ;;\n"
        "  esac\n"
        "done\n",
    ),
    (
        "/etc/systemd/system/rack-network.service",
        "0644",
        "[Unit]\n"
        "Description=Addresses of a rack machine\n"
        "DefaultDependencies=no\n"
        "After=systemd-remount-fs.service\n"
        "Before=network.target ssh.service\n"
        "Wants=network.target\n"
        "[Service]\n"
        "Type=oneshot\n"
        "RemainAfterExit=yes\n"
        "ExecStart=/usr/local/sbin/rack-network\n",
    ),
)

#: Symbolic links of the guest: path, target.
GUEST_LINKS: tuple[tuple[str, str], ...] = (
    ("/etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target"),
    ("/etc/systemd/system/sysinit.target.wants/rack-network.service", "../rack-network.service"),
    *((f"/etc/systemd/system/{unit}", "/dev/null") for unit in MASKED_UNITS),
)

#: Paths taken out of the guest again. systemd-logind stays installed and is started by D-Bus when a shutdown requests it.
GUEST_REMOVED = ("/etc/hostname", "/usr/lib/systemd/system/multi-user.target.wants/systemd-logind.service")

#: The kernel and initramfs packages of the guest make an initramfs that is not booted: keep it small and quick to make.
ESSENTIAL_SCRIPT = """\
#!/bin/sh
set -eu
mkdir -p "$1/etc/initramfs-tools/conf.d"
printf 'MODULES=list\\nCOMPRESS=gzip\\n' >"$1/etc/initramfs-tools/conf.d/rack"
"""

#: The first program of a machine: loads the modules in order, mounts the root disk and hands over.
INIT_SCRIPT = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done </modules/order
patience=200
while ! [ -b /dev/vda ] && [ $patience -gt 0 ]; do patience=$((patience - 1)); sleep 0.05; done
mount -t ext4 -o rw,noatime /dev/vda /root || { echo 'rack: the root disk is missing or cannot be mounted'; reboot; }
umount /sys
umount /proc
mount -o move /dev /root/dev
exec run-init /root /sbin/init </root/dev/console >/root/dev/console 2>&1
"""

#: Runs inside the guest's tree. klibc is what initramfs-tools brings along: 1 MB where Debian's own initramfs has 14 to 40.
INITRAMFS_SCRIPT = f"""\
#!/bin/sh
set -eu
version=$(ls /lib/modules)
tree=$(mktemp -d)
cd "$tree"
mkdir -p bin lib usr dev proc sys root modules
# Since Debian 13 its programs name their library in /usr/lib.
ln -s ../lib usr/lib
cp -a /usr/lib/klibc/bin/. bin/
cp /lib/klibc-*.so lib/
# klibc of Debian 11 has no insmod.
if ! [ -e bin/insmod ]; then
  cp /sbin/insmod bin/insmod
  ldd /sbin/insmod | grep -o '/[^ ]*' | while read -r file; do mkdir -p ".${{file%/*}}"; cp "$file" ".$file"; done
fi
for module in {" ".join(EARLY_MODULES)}; do modprobe --set-version "$version" --show-depends "$module"; done |
  awk '$1 == "insmod" && !seen[$2]++ {{ print $2 }}' |
  while read -r file; do
    cp "$file" modules/
    name=$(basename "$file")
    case $name in
      *.xz) xz -d "modules/$name"; name=${{name%.xz}} ;;
      *.zst) zstd -q -d --rm "modules/$name"; name=${{name%.zst}} ;;
    esac
    echo "$name" >>modules/order
  done
cp /rack-init init
chmod 0755 init
find . | LC_ALL=C sort | cpio --quiet -o -H newc | gzip -9 >/boot/rack-initrd
cp "/boot/vmlinuz-$version" /boot/rack-kernel
chmod 0644 /boot/rack-kernel /boot/rack-initrd
cd /
rm -rf "$tree" /rack-init /rack-initramfs
"""


def _here_document(path: str, mode: str, contents: str) -> str:
    return f'mkdir -p "$1{path.rsplit("/", 1)[0]}"\ncat >"$1{path}" <<\'END-OF-FILE\'\n{contents}END-OF-FILE\nchmod {mode} "$1{path}"\n'


def customise_script() -> str:
    """The script that turns Debian's packages into a rack machine; it gets the tree as its first argument."""
    parts = ["#!/bin/sh\nset -eu\n"]
    parts += [_here_document(*file) for file in GUEST_FILES]
    parts += [f'mkdir -p "$1{path.rsplit("/", 1)[0]}"\nln -sfn \'{target}\' "$1{path}"\n' for path, target in GUEST_LINKS]
    parts += [f'rm -f "$1{path}"\n' for path in GUEST_REMOVED]
    # Empty, not missing: systemd then takes the identity from the kernel command line and does not call it a first boot.
    parts.append(': >"$1/etc/machine-id"\n')
    parts += [_here_document("/rack-init", "0755", INIT_SCRIPT), _here_document("/rack-initramfs", "0755", INITRAMFS_SCRIPT)]
    parts.append('chroot "$1" /rack-initramfs\nrm -f "$1"/boot/initrd.img-*\n')
    return "".join(parts)


#: What :mod:`._rack.kernel` makes of the kernel of the release.
KERNEL_FORM = "uncompressed"


@frozen
class Recipe:
    """One root filesystem.

    :param suite: Debian release, for example ``bookworm``.
    :param packages: every package beyond the essential ones.
    :param size: bytes of the root filesystem.
    """

    suite: str
    packages: tuple[str, ...]
    size: int

    @property
    def digest(self) -> str:
        """SHA-256 over everything that decides what the image contains, except the day its packages were fetched."""
        parts = [
            self.suite,
            sorted(set(self.packages)),
            self.size,
            EXCLUDED_PATHS,
            ESSENTIAL_SCRIPT,
            customise_script(),
            KERNEL_FORM,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def name(self) -> str:
        """The folder of the image: release and the beginning of its hash."""
        return f"{self.suite}-{self.digest[:16]}"

    def bootstrap_arguments(self, *, tree: str, essential: str, customise: str, sources: t.Sequence[str]) -> list[str]:
        """The command that makes the tree.

        :param tree: the folder to make.
        :param essential: path of a file with :data:`ESSENTIAL_SCRIPT`.
        :param customise: path of a file with :func:`customise_script`.
        :param sources: mirrors or apt source lines; empty leaves the choice to mmdebstrap.
        """
        return [
            "mmdebstrap",
            "--mode=auto",
            "--variant=minbase",
            "--format=directory",
            "--architectures=amd64",
            '--aptopt=Acquire::Languages "none"',
            *(f"--dpkgopt=path-exclude={path}" for path in EXCLUDED_PATHS),
            f"--include={','.join(sorted(set(self.packages)))}",
            f"--essential-hook={essential}",
            f"--customize-hook={customise}",
            self.suite,
            tree,
            *sources,
        ]


def recipe_from_options(options: t.Mapping[str, t.Any]) -> Recipe:
    """The recipe that the options of the module describe.

    :raises BadInput: if the size is no size, or a name cannot be the name of a release or package.
    """
    packages = tuple(options["packages"] or DEFAULT_PACKAGES) + tuple(options["extra_packages"])
    for name in (options["suite"], *packages):
        if not _PACKAGE_NAME.fullmatch(name):
            raise BadInput(f"'{name}' is not the name of a Debian package or release.", item=name)
    size = parse_size(options["size"], "size")
    if size < 512 * MIB:
        raise BadInput(f"size: a root filesystem of {format_size(size)} is too small, give it at least 512 MiB.", item="size")
    return Recipe(options["suite"], packages, size)
