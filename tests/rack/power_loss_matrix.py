#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The laboratory of the power-loss test: stacks whose right answer follows from how they are built, all on one machine, all tested by each power cut.

usage: power_loss_matrix.py [--cuts N] [--results FILE] [CELL ...]     with the machine of tests/rack/power_matrix running: scripts/power-loss-matrix

Every cell (power_matrix/cells.py) has a writer of its own with a run of its own, on disks of its own. When the witness has 100 acknowledged writes of
each and every one is still active, the power is cut; then every acknowledged write is read. The exit status is 1 if one answer was not the right one.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
# Not PYTHONPATH: the commands of Ansible that this starts must not have it.
sys.path[:0] = [str(HERE), str(HERE / "power_matrix"), os.environ.get("ANSIBLE_COLLECTIONS_PATH", "")]

from cells import CELLS, KEPT, LOST, TORN, Cell, script
from power_loss import FOLDER, Controller, witness_of

WRITES = 100
LONGEST = 1800.0


class Laboratory(Controller):
    """The machine of the laboratory."""

    def install(self) -> None:
        import ansible

        core = Path(ansible.__file__).parents[1]
        for folder, name, place in ((TOP / "plugins", "module_utils", "ansible_collections/cachefleet/storage/plugins"), (core, "ansible/module_utils", ".")):
            packed = subprocess.run(["tar", "-C", str(folder), "--exclude=__pycache__", "-cz", name], capture_output=True, check=True).stdout
            self.run(f"mkdir -p {FOLDER}/{place} && tar -xz -C {FOLDER}/{place}", stdin=packed)
        self.run(f"touch {FOLDER}/ansible/__init__.py && cat > {FOLDER}/on_machine.py && sync", stdin=(HERE / "power_matrix/on_machine.py").read_bytes())

    def shell(self, part: str) -> None:
        report(f"{part} begins")
        self.run("bash", stdin=script(part).encode(), timeout=LONGEST)

    def orders(self, command: str, orders: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
        words = f"cd {FOLDER} && PYTHONPATH={FOLDER} python3 on_machine.py {command}"
        return json.loads(self.run(words, stdin=json.dumps(orders).encode(), timeout=LONGEST))


def report(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def right(cell: Cell, found: t.Mapping[str, t.Any]) -> bool:
    """Whether the verifier gave the answer of the construction."""
    if cell.answer == TORN:
        return found["verdict"] == LOST and found["torn"] == found["damaged"] > 0
    return found["verdict"] == cell.answer


def order_of(cell: Cell) -> dict[str, t.Any]:
    return {"name": cell.name, "target": cell.target, "load": cell.load}


def one_cut(machine: Laboratory, cells: t.Sequence[Cell]) -> list[dict[str, t.Any]]:
    """The power cut, with what was found for each cell."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import log_path

    orders = [{**order_of(cell), "run": secrets.token_hex(16), "secret": secrets.token_hex(32)} for cell in cells]
    with tempfile.TemporaryDirectory() as name:
        logs = Path(name)
        with witness_of(machine, logs, orders) as port:
            machine.orders("write", [{**order, "port": port} for order in orders])
            report("all writers run")
            paths = [log_path(logs, order["run"]) for order in orders]
            _cut_power(machine, orders, paths)
        report("the power was cut")
        machine.start()
        machine.shell("up")
        return machine.orders("verify", [{**order, "log": path.read_text(errors="replace")} for order, path in zip(orders, paths)])


def _cut_power(machine: Laboratory, orders: t.Sequence[t.Mapping[str, t.Any]], paths: t.Sequence[Path]) -> None:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_witness

    folder = paths[0].parent
    for order in orders:
        host_witness.wait_for_writes(folder, order["run"], WRITES, LONGEST)
    for order in orders:
        host_witness.announce_cut(folder, order["run"], 300)
    machine.cut()


def line(cell: Cell, cut: int, found: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    counts = {key: found[key] for key in ("verdict", "acknowledged", "places", "damaged", "lost", "stale", "torn", "misplaced", "reordered", "fence_damaged")}
    return {"cut": cut, "cell": cell.name, "answer": cell.answer, "right": right(cell, found), **counts, "reason": found["reason"]}


def table(cells: t.Sequence[Cell], lines: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """The result as Markdown."""
    rows = [
        "| cell | disks | sync | right answer, and why | cuts with it | blocks checked | damaged | `cache_stack_info` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cell in cells:
        own = [one for one in lines if one["cell"] == cell.name]
        load = ", ".join(str(value) for key, value in cell.load.items() if key in ("sync", "layout")) + (
            f", depth {cell.load['depth']}" if "depth" in cell.load else ""
        )
        numbers = (sum(one["right"] for one in own), len(own), sum(one["places"] for one in own), sum(one["damaged"] for one in own))
        verdicts = ", ".join(sorted({f"`{one['stack']}`" for one in own}))
        rows.append(
            f"| `{cell.name}` | {cell.disks} | {load} | {cell.answer}: {cell.why} | {numbers[0]} of {numbers[1]} | {numbers[2]} | {numbers[3]} | {verdicts} |"
        )
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=3)
    parser.add_argument("--results", type=Path, help="append a line of JSON for each cell and cut to this file")
    parser.add_argument("--built", action="store_true", help="the stacks were built by an earlier run")
    parser.add_argument("cells", nargs="*", metavar="CELL", help="all by default")
    options = parser.parse_args()
    unknown = sorted(set(options.cells) - {cell.name for cell in CELLS})
    if unknown:
        parser.error(f"{unknown[0]} is not a cell: use {', '.join(cell.name for cell in CELLS)}")
    cells = [cell for cell in CELLS if not options.cells or cell.name in options.cells]
    machine = Laboratory(os.environ.get("VIRTUAL_RACK_NAME", "rack"), "node1")
    if not options.built:
        machine.shell("make")
        # A disk that lies only writes its cache out when it is switched off in order: the stacks on it must be there after the power cut.
        machine.start("shutdown")
    machine.shell("up")
    machine.install()
    stacks = machine.orders("stacks", [order_of(cell) for cell in cells])
    for cell, stack in zip(cells, stacks):
        print(json.dumps({"cell": cell.name, "stack": stack}), flush=True)
    lines = []
    for cut in range(1, options.cuts + 1):
        for cell, stack, found in zip(cells, stacks, one_cut(machine, cells)):
            # Without a flush, what cache_stack_info says of such writes.
            lines.append({**line(cell, cut, found), "stack": stack["unflushed" if cell.load["sync"] == "none" else "verdict"]})
            print(json.dumps(lines[-1]), flush=True)
        if options.results:
            with options.results.open("a") as stream:
                stream.writelines(json.dumps(one) + "\n" for one in lines if one["cut"] == cut)
    print(table(cells, lines))
    wrong = [one for one in lines if not one["right"]]
    honest = [one for one in lines if one["answer"] == KEPT]
    accused = sum(one["verdict"] == LOST for one in honest)
    print(f"{len(lines)} runs, {len(wrong)} with a wrong answer; {accused} false accusations in {len(honest)} runs on stacks that keep everything")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
