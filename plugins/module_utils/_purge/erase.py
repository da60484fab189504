# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that purge a drive, each followed by reading back what the drive reports. Exit statuses of these tools are no proof."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective
from ansible_collections.cachefleet.storage.plugins.module_utils._device import namespaces
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import discard, run_forced
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.output import (
    AtaSecurity,
    SanitizeLog,
    parse_sanitize_log,
    parse_security,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._purge.plan import PurgeState

#: The password of an ATA drive during its erase. It is no secret: who finds the drive locked after a power cut must be able to unlock it.
PASSWORD = "cachefleet"

#: Seconds that a purge may take where a drive gives no time.
LONGEST = 12 * 3600.0
_SANITIZE_LOOK = 5.0
_SES = {"nvme_format": 1, "nvme_crypto_format": 2}
_SANACT = {"nvme_sanitize": 2, "nvme_crypto_sanitize": 4}


def erase(runner: Runner, path: str, method: str, found: PurgeState, sleep: t.Callable[[float], None]) -> None:
    """Purge the drive at ``path``.

    :raises StorageError: if a command failed or the drive does not report what it should.
    """
    if method.startswith("ata_"):
        _ata(runner, path, found.security or AtaSecurity(), enhanced=method == "ata_enhanced_erase")
    elif method in _SES:
        _format(runner, path, _SES[method], found.flbas)
    elif method in _SANACT:
        _sanitize(runner, found.controller, path, _SANACT[method], sleep)
    elif method == "scsi_sanitize":
        # --quick: without the 15 seconds in which it can be cancelled. It polls until the drive is done.
        runner.run(["sg_sanitize", "--block", "--quick", path], timeout=LONGEST, item=path)
    else:
        discard(runner, path, timeout=LONGEST)


def read_security(runner: Runner, path: str) -> AtaSecurity:
    """What a SATA drive reports of its security feature set."""
    return parse_security(runner.run(["hdparm", "-I", path], ok=None, item=path).stdout)


def _ata(runner: Runner, path: str, security: AtaSecurity, *, enhanced: bool) -> None:
    option, minutes = ("--security-erase-enhanced", security.enhanced_minutes) if enhanced else ("--security-erase", security.minutes)
    if security.locked:
        # After a purge that was interrupted by a power cut: only with this password the drive takes another one.
        _security(runner, path, "--security-unlock")
    if not security.enabled:
        completed = _security(runner, path, "--security-set-pass")
        if not read_security(runner, path).enabled:
            raise CommandFailed(f"{path} did not accept the password that an erase requires: {completed.last_words}", item=path, completed=completed)
    completed = _security(runner, path, option, LONGEST if not minutes else 2 * 60.0 * minutes + 600)
    after = read_security(runner, path)
    if after.enabled:
        # An erase removes the password. One that was not carried out leaves it, and the drive would be locked from the next power cycle on.
        _security(runner, path, "--security-disable")
        if read_security(runner, path).enabled:
            raise NotEffective(
                f"{path} still has the password '{PASSWORD}' after the erase, which was not carried out ({completed.last_words}): it is locked from the next "
                f"power cycle on until 'hdparm --user-master u --security-disable {PASSWORD} {path}' succeeds.",
                item=path,
            )
        raise CommandFailed(f"{path} did not carry out the erase, and its password was removed again: {completed.last_words}", item=path, completed=completed)
    if completed.rc:
        raise CommandFailed(f"{path} did not carry out the erase: {completed.last_words}", item=path, completed=completed)


def _security(runner: Runner, path: str, option: str, timeout: float | None = None) -> Completed:
    return runner.run(["hdparm", "--user-master", "u", option, PASSWORD, path], ok=None, timeout=timeout, item=path)


def _format(runner: Runner, path: str, ses: int, flbas: int) -> None:
    command = ["nvme", "format", path, f"--ses={ses}", f"--lbaf={flbas}", f"--timeout={round(LONGEST) * 1000}"]
    completed = run_forced(runner, command, path, timeout=LONGEST)
    if completed.rc:
        raise CommandFailed(f"{path} was not formatted: {completed.last_words}", item=path, completed=completed)


def _sanitize(runner: Runner, controller: str, path: str, action: int, sleep: t.Callable[[float], None]) -> None:
    # A sanitize goes on in the drive whatever becomes of the host: one that was interrupted here is only waited for.
    if read_sanitize_log(runner, controller).state != "running":
        runner.run(["nvme", "sanitize", controller, f"--sanact={action}"], item=path)
    waited = 0.0
    log = read_sanitize_log(runner, controller)
    while log.state == "running" and waited < LONGEST:
        sleep(_SANITIZE_LOOK)
        waited += _SANITIZE_LOOK
        log = read_sanitize_log(runner, controller)
    if log.state != "done":
        raise NotEffective(f"{path} reports that its sanitize is {log.state} (nvme sanitize-log {controller}), and not that it is done.", item=path)


def read_sanitize_log(runner: Runner, controller: str) -> SanitizeLog:
    """:raises NotUnderstood: if it is not JSON."""
    return parse_sanitize_log(namespaces.read_json(runner, ["nvme", "sanitize-log", controller, "--output-format=json"], controller))
