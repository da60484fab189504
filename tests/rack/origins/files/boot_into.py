# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Have the machine boot into the root of a folder, by kexec: with its kernel, its initramfs and the command line of now, and another root=.

usage: boot_into.py FOLDER ROOT

QEMU starts the rack's own kernel, whose init knows one root only. Source: kexec_file_load(2), number 320 on x86-64.
"""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

folder, root = Path(sys.argv[1]), sys.argv[2]
release = os.uname().release
words = re.sub(r"(?m)(^|\s)root=\S+", rf"\1root={root}", Path("/proc/cmdline").read_text().strip()).encode() + b"\0"
kernel = os.open(folder / f"boot/vmlinuz-{release}", os.O_RDONLY)
image = os.open(folder / f"boot/initrd.img-{release}", os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(320, kernel, image, len(words), ctypes.c_char_p(words), 0):
    sys.exit(f"kexec_file_load: {os.strerror(ctypes.get_errno())}")
os.close(kernel)
os.close(image)
if os.path.ismount(folder) and folder != Path("/"):
    subprocess.run(["umount", folder], check=True)
subprocess.run(["systemctl", "kexec"], check=True)
