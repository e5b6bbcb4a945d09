# SPDX-License-Identifier: Apache-2.0
"""What a probe pays for memory of the program (decisions/reading-memory.md)."""

import subprocess

from table import Row, progress

WAYS = {
    "load": "read 8 bytes: a load, out of line",
    "kernel": "read 8 bytes: by the kernel, as try_read does",
    "kernel-fails": "the same, of an address that is not mapped",
    "look-up": "ask the kernel for the mapping of an address",
}


def reading_rows(programs):
    progress("reading: four ways, in turns")
    run = subprocess.run([str(programs / "read_cost")], capture_output=True, text=True, check=True)
    rows = []
    for line in run.stdout.splitlines():
        way, *ns = line.split()
        middle, low, high = map(float, ns)
        rows.append(Row(WAYS[way], "", "ns", None).set(middle, (low, high)))
    return rows
