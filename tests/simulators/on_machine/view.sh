#!/bin/sh
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Runs a command on a machine that seems to have the kernel modules flashcache and EnhanceIO: in a mount namespace whose /proc can have
# more files, and whose dmsetup shows the simulated devices. The machine itself sees the sysctls only, because its units write them.
#
# usage: view.sh COMMAND [ARGUMENT...]        as root, on a machine for tests
set -eu

[ ! -e /proc/cachefleet-view ] || exec "$@"

run=/run/cachefleet-simulators
simulated=/usr/lib/cachefleet-simulators/flashcache/dmsetup

make_view() {
    mkdir -p "$run"
    # The file of a mount namespace must lie on a mount that is not shared.
    mount --bind "$run" "$run"
    mount --make-private "$run"
    mkdir -p "$run/real" "$run/proc"
    touch "$run/view" "$run/real/dmsetup"
    real=$(readlink -f "$(command -v dmsetup)")
    mount --bind "$real" "$run/real/dmsetup"
    mount -t tmpfs -o mode=755 none /proc/sys/dev
    mount --rbind /proc "$run/proc"
    # shellcheck disable=SC2016 # for the shell that is started
    unshare --mount="$run/view" --propagation slave sh -eu -c '
        mount --bind "$2" "$3"
        mount -t tmpfs -o mode=755 none /proc
        for each in "$1"/proc/*; do
            case ${each##*/} in
                [0-9]* | modules) ;;
                *) ln -s "$each" "/proc/${each##*/}" ;;
            esac
        done
        ln -s "$1/proc/1" /proc/1
        cat "$1/proc/modules" > /proc/modules
        : > /proc/cachefleet-view
    ' view "$run" "$simulated" "$real"
    : > "$run/ready"
}

exec 9> /run/cachefleet-simulators.lock
flock 9
[ -e "$run/ready" ] || make_view
exec 9>&-
# A namespace begins in its root folder.
# shellcheck disable=SC2016
exec nsenter --mount="$run/view" -- sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
