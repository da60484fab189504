# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Signatures with the real ssh-keygen, and what happens where it is missing or hangs."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import certificate, signature
from ansible_collections.cachefleet.storage.tests.unit.support.judged import context, judgement

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen (Debian package openssh-client) is not installed")
ME = "rack@example.org"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name, passphrase in (("mine", ""), ("other", ""), ("locked", "secret")):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", folder / name], check=True, timeout=60)
    return folder


@pytest.fixture
def path(tmp_path):
    return certificate.write(tmp_path, (judgement(),), context())[0]


def allow(keys, name="mine", identity=ME, options='namespaces="cachefleet"'):
    """The file of allowed signers with one line."""
    made = keys / "allowed"
    made.write_text(f"{identity} {options} {(keys / f'{name}.pub').read_text()}")
    return str(made)


def sentence(found, keys):
    """What was returned; it is one sentence, and has nothing of a key."""
    assert found and found.endswith(".") and "\n" not in found
    for key in keys.glob("*"):
        if key.name != "allowed":
            assert not any(line in found for line in key.read_text().splitlines())
    return found


@needs_ssh
def test_signed_certificate_is_verified(keys, path):
    assert signature.sign(path, str(keys / "mine")) is None
    made = signature.signature_of(path)
    assert made.name == "host-node1.json.sig" and made.stat().st_mode & 0o777 == 0o644
    assert signature.verify(path, allow(keys), ME) is None
    # Again, over the one that is there.
    assert signature.sign(path, str(keys / "mine")) is None


REJECTED = {
    "another key": ({"name": "other"}, "its key is not one of those that"),
    "another identity": ({"identity": "you@example.org"}, "its key is not one of those that"),
    "another namespace": ({"options": 'namespaces="git"'}, "not permitted for use in signature namespace"),
    "expired": ({"options": 'valid-before="20200101"'}, "key has expired"),
    "not valid yet": ({"options": 'valid-after="20990101"'}, "key is not yet valid"),
}


@needs_ssh
@pytest.mark.parametrize("case", REJECTED)
def test_key_that_is_not_allowed_is_rejected(keys, path, case):
    allowed, expected = REJECTED[case]
    assert signature.sign(path, str(keys / "mine")) is None
    assert expected in sentence(signature.verify(path, allow(keys, **allowed), ME), keys)


@needs_ssh
def test_changed_certificate_or_signature_is_rejected(keys, path):
    assert signature.sign(path, str(keys / "mine")) is None
    made, content = signature.signature_of(path), path.read_text()
    path.write_text(content.replace("pass", "fail"))
    assert "incorrect signature" in sentence(signature.verify(path, allow(keys), ME), keys)
    path.write_bytes(b"\xff")
    assert "it is not UTF-8" in sentence(signature.verify(path, allow(keys), ME), keys)
    path.write_text(content)
    made.write_text("x")
    assert "missing header" in sentence(signature.verify(path, allow(keys), ME), keys)
    made.write_text("x" * 10**6)
    assert "larger than 64 KiB" in sentence(signature.verify(path, allow(keys), ME), keys)
    made.unlink()
    assert "is not signed" in sentence(signature.verify(path, allow(keys), ME), keys)


@needs_ssh
def test_signature_of_another_namespace_is_rejected(keys, path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(signature, "NAMESPACE", "git")
        assert signature.sign(path, str(keys / "mine")) is None
    assert "namespace does not match" in sentence(signature.verify(path, allow(keys), ME), keys)


@needs_ssh
@pytest.mark.parametrize("identity", ["", " ", "a\nb", "a\0b"])
def test_invalid_identity_is_rejected(keys, path, identity):
    assert "give an identity" in sentence(signature.verify(path, allow(keys), identity), keys)


@needs_ssh
@pytest.mark.parametrize("identity", ["*", "-Y"])
def test_identity_is_neither_a_pattern_nor_an_option(keys, path, identity):
    assert signature.sign(path, str(keys / "mine")) is None
    assert "is not verified" in sentence(signature.verify(path, allow(keys), identity), keys)


@pytest.mark.parametrize("allowed", ["", ".", "/nowhere", "a\0b", "x" * 5000])
def test_missing_allowed_signers_are_reported(path, tmp_path, allowed):
    assert "is not one that can be read" in sentence(signature.verify(path, allowed, ME), tmp_path / "none")


@needs_ssh
def test_key_with_passphrase_does_not_ask(keys, path, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert "has a passphrase: add it to ssh-agent" in sentence(signature.sign(path, str(keys / "locked")), keys)
    assert not signature.signature_of(path).exists()


@needs_ssh
def test_unusable_keys_are_reported(keys, path, tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("nothing")
    bad.chmod(0o600)
    assert "cannot be signed with" in sentence(signature.sign(path, str(bad)), keys)
    bad.write_text((keys / "mine").read_text())
    bad.chmod(0o644)
    assert "other users may read the key" in sentence(signature.sign(path, str(bad)), keys)


def test_key_in_the_place_of_its_path_is_not_repeated(path):
    found = signature.sign(path, "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n")
    assert found == "The key to sign certificates must be the path of a file, not the key itself."


@pytest.mark.parametrize("key", ["", ".", "/nowhere", "a\0b", "x" * 5000, "~nobody-here/key"])
def test_missing_key_is_reported(path, key):
    assert "is not a file that can be read" in signature.sign(path, key)


@needs_ssh
def test_unwritable_signature_is_reported(keys, path):
    signature.signature_of(path).mkdir()
    assert "cannot be written" in sentence(signature.sign(path, str(keys / "mine")), keys)


def fake(tmp_path, script):
    """A file that stands for a key, and a runner with this ssh-keygen."""
    tool = tmp_path / "ssh-keygen"
    if script:
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    key = tmp_path / "key"
    key.write_text("x")
    runner = Runner()
    runner._path_of = lambda name: (str(tool) if tool.exists() else "") if name == "ssh-keygen" else shutil.which(name)
    return str(key), runner


FAKES = {
    "missing": ("", "the command ssh-keygen is missing on the controller"),
    "hanging": ("sleep 60", "did not end within 0.2 seconds and was stopped"),
    "old": ("echo 'unknown option -- Y' >&2; exit 1", "unknown option -- Y"),
    "silent": ("exit 0", "cannot be signed"),
    "much": ("yes", "printed more than"),
}


@pytest.mark.parametrize("case", FAKES)
def test_failing_ssh_keygen_is_one_sentence(path, tmp_path, monkeypatch, case):
    script, expected = FAKES[case]
    key, runner = fake(tmp_path, script)
    if case == "hanging":
        monkeypatch.setattr(signature, "LIMIT", 0.2)
    found = signature.sign(path, key, runner)
    assert expected in found and found.endswith(".") and "\n" not in found and not signature.signature_of(path).exists()
    if case != "silent":
        signature.signature_of(path).write_text("x")
        assert "is not verified" in signature.verify(path, key, ME, runner)
