# SPDX-License-Identifier: Apache-2.0
"""What a probe pays for memory of the program (decisions/reading-memory.md)."""

import subprocess

from probe_cost import COUNT, SLOW_SHARE, HotLoop, entry
from table import Row, progress
from tracing import Clew

WAYS = {
    "load": "read 8 bytes: a load, out of line",
    "kernel": "read 8 bytes: by the kernel, as try_read does",
    "kernel-fails": "the same, of an address that is not mapped",
    "look-up": "ask the kernel for the mapping of an address",
    "vdso-load": "read 8 bytes: by a load that cannot fault",
    "vdso-no": "the same, of an address that is not mapped",
    "vdso-text": "read a text of 100: by such loads",
}


# What is read, the function that gives it, the condition in a query and in bpftrace, and the goal
# on a machine whose vDSO can have the load (src/inline/vdso_load.h).
READS = [
    ("nothing, a condition on arg0", "with_chain", "e.arg0 != 1", "arg0 != 1", None),
    ("8 bytes", "with_chain", "*(long*)e.arg0 != 1", "(*(int64*)arg0) != 1", 4),
    ("a chain of four pointers", "with_chain", "****(long****)e.arg0 != 1",
     "(*(int64*)*(int64*)*(int64*)*(int64*)arg0) != 1", None),
    ("a text of 16", "with_short_text", 'str(e.arg0, 24) != "y"', 'str(arg0, 24) != "y"', None),
    ("a text of 100", "with_middle_text", 'str(e.arg0, 128) != "y"', 'str(arg0, 64) != "y"', 40),
    ("a text of 255", "with_long_text", 'str(e.arg0, 256) != "y"', 'str(arg0, 64) != "y"', None),
]


# Longer than a condition's texts may be. Of an event, an eighth of a ring in each burst.
LONG_TEXT = f"from e in {entry('empty_memory')} select str(e.arg0, 1024) as text"
LONG_TEXT_PEER = 'uprobe:PROGRAM:empty_memory { printf("%s\\n", str(arg0, 64)); }'
LONG_TEXT_CALLS = 120


def has_loads():
    """Whether probes read memory by loads on this machine."""
    told = subprocess.run([Clew.command, "doctor"], capture_output=True, text=True, check=False)
    return "probes read memory by loads" in told.stdout


def read_rows(programs, repetitions):
    """A count of calls where what is read is not something else: all of them."""
    loop = HotLoop(programs, repetitions)
    rows = []
    by_loads = has_loads()
    for what, function, condition, theirs, limit in READS:
        query = (f"from e in {entry('empty_memory')} where {condition} "
                 f"select new {{ {COUNT} }}")
        peer = f"uprobe:PROGRAM:empty_memory /{theirs}/ {{ @ = count(); }}"
        rows.append(loop.row(f"read {what}", limit if by_loads else None, query, peer=peer,
                             function=function, note="by loads" if by_loads else "by the kernel",
                             share=1 if by_loads else SLOW_SHARE))
    rows.append(loop.row("an event with a text of 1,000", None, LONG_TEXT, peer=LONG_TEXT_PEER,
                         function="with_long_text", events=LONG_TEXT_CALLS,
                         note=f"{'by loads' if by_loads else 'by the kernel'}; bpftrace: 64 of "
                         "them"))
    return rows


def reading_rows(programs, repetitions):
    rows = read_rows(programs, repetitions)
    progress("reading: four ways, in turns")
    for program in ("read_cost", "load_cost"):
        run = subprocess.run([str(programs / program)], capture_output=True, text=True, check=True)
        for line in run.stdout.splitlines():
            way, *ns = line.split()
            middle, low, high = map(float, ns)
            rows.append(Row(WAYS[way], "", "ns", None).set(middle, (low, high)))
    return rows
