# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Building and keeping the root filesystem of rack machines."""

from __future__ import annotations

import os
import pathlib
import pwd
import shutil
import tempfile
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.build_folder import make_build_folder, namespace_root, require_protected
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.kernel import uncompressed
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import (
    exclusive,
    read_json,
    require_free,
    write_json,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.recipe import ESSENTIAL_SCRIPT, Recipe, customise_script

#: Debian and Ubuntu packages that carry the commands of the rack.
HOST_PACKAGES = {
    "mke2fs": "e2fsprogs",
    "mmdebstrap": "mmdebstrap",
    "newuidmap": "uidmap",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}

#: The files an image consists of. The last one written marks the image as complete.
IMAGE_FILES = {"base": "base.qcow2", "kernel": "kernel", "initrd": "initrd", "host_key": "ssh_host_ed25519_key.pub"}

#: Measured for the default packages: the tree has 0.7 GiB, the file system made of it 0.8, the image 0.75.
SCRATCH_BYTES = 3 * GIB
IMAGE_BYTES = int(1.2 * GIB)

DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def require_tools(runner: Runner, names: t.Iterable[str]) -> None:
    """See that commands are installed.

    :raises ToolMissing: naming all that are missing and the one command that installs them.
    """
    missing = [name for name in names if not runner.has(name)]
    if missing:
        packages = " ".join(sorted({HOST_PACKAGES.get(name, name) for name in missing}))
        verb = "is" if len(missing) == 1 else "are"
        raise ToolMissing(f"{', '.join(missing)} {verb} not installed on this host: run 'apt-get install {packages}' as root.", item=missing[0])


def parse_index_targets(text: str, suite: str) -> list[str]:
    """The apt source lines of this host that serve a Debian release.

    :param text: what ``apt-get indextargets`` prints with the format of :func:`host_sources`.
    :returns: one-line-style sources for the release, its updates and its security archive; empty if the host is no such Debian.
    """
    components: dict[tuple[str, str], list[str]] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 5:
            continue
        uri, release, codename, component, origin = fields
        if origin == "Debian" and codename in (suite, f"{suite}-updates", f"{suite}-security") and component not in components.setdefault((uri, release), []):
            components[(uri, release)].append(component)
    if not any(release == suite for _uri, release in components):
        return []
    signed = f"[signed-by={DEBIAN_KEYRING}] " if os.path.exists(DEBIAN_KEYRING) else ""
    return [f"deb {signed}{uri} {release} {' '.join(names)}" for (uri, release), names in components.items()]


def host_sources(runner: Runner, suite: str) -> list[str]:
    """Where apt on this host gets a Debian release from, so that its mirror or proxy serves the guests too."""
    if not runner.has("apt-get"):
        return []
    form = "$(REPO_URI) $(RELEASE) $(CODENAME) $(COMPONENT) $(ORIGIN)"
    return parse_index_targets(runner.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], ok=None).stdout, suite)


def has_subordinate_ids(root: pathlib.Path, user: str) -> bool:
    """Whether a user may have a user namespace with many users in it."""
    for name in ("subuid", "subgid"):
        try:
            lines = (root / "etc" / name).read_text().splitlines()
        except FileNotFoundError:
            return False
        if not any(line.split(":")[0] == user for line in lines):
            return False
    return True


@frozen
class BuildImage(Operation):
    """Build the image, unless another run has done so meanwhile."""

    def carry_out(self, layer: ImageLayer, _step: Step) -> None:
        # Another builder may have finished while this one waited.
        if not layer.read().present:
            layer.build()


@frozen
class RemoveImage(Operation):
    """Remove the folder of the image."""

    def carry_out(self, layer: ImageLayer, _step: Step) -> None:
        shutil.rmtree(layer.folder)


@frozen
class ImageSpec:
    """An image, and whether it should be there."""

    recipe: Recipe
    present: bool


@frozen
class ImageState:
    """Whether the image is complete, and its metadata."""

    present: bool
    seconds: float = 0.0


class ImageLayer(Layer[ImageState, ImageSpec]):
    """One image in the cache folder.

    :param cache_dir: where images are kept, each in a folder named by release and hash.
    :param mirror: mirror URI or apt source lines; empty takes what apt of this host uses.
    """

    name = "virtual_rack_image"

    def __init__(
        self,
        runner: Runner,
        spec: ImageSpec,
        cache_dir: pathlib.Path,
        *,
        mirror: t.Sequence[str] = (),
        scratch: pathlib.Path = pathlib.Path("/var/tmp"),
        root: pathlib.Path = pathlib.Path("/"),
    ) -> None:
        super().__init__(runner, spec, root)
        self.recipe = spec.recipe
        self.images = cache_dir / "images"
        self.folder = self.images / self.recipe.name
        self.mirror = list(mirror)
        self.scratch = scratch

    def read(self) -> ImageState:
        note = read_json(self.folder / "image.json")
        complete = note is not None and all((self.folder / file).is_file() for file in IMAGE_FILES.values())
        return ImageState(complete, float(note["seconds"]) if complete else 0.0)

    def plan(self, state: ImageState) -> list[Step]:
        name = self.recipe.name
        if self.spec.present and not state.present:
            return [Step(self.name, name, "state", "absent", "present", f"Build the image {name}", BuildImage())]
        if not self.spec.present and state.present:
            return [Step(self.name, name, "state", "present", "absent", f"Remove the image {name}", RemoveImage())]
        return []

    def apply(self, step: Step) -> None:
        with exclusive(self.images / ".lock", patience=1800, what="the images"):
            super().apply(step)

    def facts(self, state: ImageState) -> dict[str, t.Any]:
        """The image, and the seconds it took to build."""
        return {"image": self.paths(), "seconds": state.seconds}

    def paths(self) -> dict[str, t.Any]:
        """What the module virtual_rack needs to start machines from this image."""
        return {
            "digest": self.recipe.digest,
            "directory": str(self.folder),
            "suite": self.recipe.suite,
            **{key: str(self.folder / file) for key, file in IMAGE_FILES.items()},
        }

    def require_builder(self) -> None:
        """See that this host can build.

        :raises StorageError: naming what is missing and how to get it.
        """
        require_tools(self.runner, ["mmdebstrap", "mke2fs", "qemu-img"])
        if os.geteuid() != 0:
            user = pwd.getpwuid(os.geteuid()).pw_name
            require_tools(self.runner, ["newuidmap"])
            if not has_subordinate_ids(self.root, user):
                raise Refused(
                    f"The user {user} may not build an image: run this task with become, or give the user subordinate ids"
                    f" with 'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}' as root.",
                    item=user,
                )
        require_free(self.scratch, SCRATCH_BYTES, "building the image")
        require_free(self.images, IMAGE_BYTES, "keeping the image")

    def build(self) -> None:
        self.require_builder()
        started = time.monotonic()
        require_protected(self.images)
        # As an ordinary user everything is done inside a user namespace, whose root is another user outside: it needs a place
        # that it may enter and write, and it alone can remove what it made.
        ordinary = os.geteuid() != 0
        inside = ["mmdebstrap", "--unshare-helper"] if ordinary else []
        work = make_build_folder(self.scratch, namespace_root(self.runner) if ordinary else None)
        result = pathlib.Path(tempfile.mkdtemp(prefix=".build.", dir=str(self.images)))
        try:
            tree = work / "root"
            self._bootstrap(work, tree)
            self.runner.run(
                [
                    *inside,
                    self.runner.find("mke2fs"),
                    "-q",
                    "-t",
                    "ext4",
                    "-E",
                    "lazy_itable_init=0,lazy_journal_init=0",
                    "-d",
                    str(tree),
                    str(work / "root.img"),
                    f"{self.recipe.size // 1024}k",
                ],
                timeout=600,
            )
            self.runner.run(["qemu-img", "convert", "-O", "qcow2", str(work / "root.img"), str(result / IMAGE_FILES["base"])], timeout=600)
            (result / IMAGE_FILES["kernel"]).write_bytes(uncompressed((tree / "boot/rack-kernel").read_bytes()))
            shutil.copy(tree / "boot/rack-initrd", result / IMAGE_FILES["initrd"])
            shutil.copy(tree / "etc/ssh/ssh_host_ed25519_key.pub", result / IMAGE_FILES["host_key"])
            note = {
                "digest": self.recipe.digest,
                "suite": self.recipe.suite,
                "packages": list(self.recipe.packages),
                "size": self.recipe.size,
                "seconds": round(time.monotonic() - started, 1),
            }
            write_json(result / "image.json", note)
            self._publish(result)
        finally:
            self.runner.run([*inside, "rm", "-rf", str(work / "root"), str(work / "root.img")], ok=None, timeout=300)
            shutil.rmtree(work, ignore_errors=True)
            shutil.rmtree(result, ignore_errors=True)

    def _bootstrap(self, work: pathlib.Path, tree: pathlib.Path) -> None:
        scripts = {"essential": ESSENTIAL_SCRIPT, "customise": customise_script()}
        for name, text in scripts.items():
            (work / name).write_text(text)
            (work / name).chmod(0o755)
        sources = self.mirror or host_sources(self.runner, self.recipe.suite)
        arguments = self.recipe.bootstrap_arguments(tree=str(tree), essential=str(work / "essential"), customise=str(work / "customise"), sources=sources)
        completed = self.runner.run(arguments, ok=None, timeout=1800)
        if completed.rc != 0:
            lines = [line for line in completed.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))][-5:]
            reason = "; ".join(lines) or completed.last_words
            # A build that fails leaves nothing behind.
            raise StorageError(
                f"mmdebstrap could not create the image (exit status {completed.rc}): {reason}", item=self.recipe.name, completed=completed, changed=False
            )

    def _publish(self, result: pathlib.Path) -> None:
        """Readable by the users of the cache folder, also when root built it for them; complete or not there at all."""
        owner = self.images.stat() if os.geteuid() == 0 else None
        # The owner of the cache folder may have put links there meanwhile: modes and owners are set through open files.
        folder = os.open(result, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in os.listdir(folder):
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    _hand_over(file, 0o644, owner)
                finally:
                    os.close(file)
            _hand_over(folder, 0o755, owner)
        finally:
            os.close(folder)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        os.rename(result, self.folder)


def _hand_over(handle: int, mode: int, owner: os.stat_result | None) -> None:
    os.fchmod(handle, mode)
    if owner is not None:
        os.fchown(handle, owner.st_uid, owner.st_gid)
