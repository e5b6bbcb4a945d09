# SPDX-License-Identifier: Apache-2.0
"""What a hit costs more where programs may not set their gs base, on a machine where they may."""

import struct
from pathlib import Path

from probe_cost import COUNT, HotLoop, entry, entry_and_return, select
from table import Row, interleave
from tracing import Program

AT_HWCAP2, FSGSBASE = 26, 1 << 1  # Linux, asm/hwcap2.h.
WITHOUT = {"CLEW_NO_FSGSBASE": "1"}


def may_set_bases():
    words = struct.iter_unpack("QQ", Path("/proc/self/auxv").read_bytes())
    return any(kind == AT_HWCAP2 and value & FSGSBASE for kind, value in words)


def bases_row(loop, what, query, hits):
    row = Row(f"{what}, more without FSGSBASE", "<= 1 ns", "ns", 1)
    if not may_set_bases():
        return row.fail("this machine is one without it")
    with Program(loop.path) as program:
        loop.time(program)  # Warm.
        found = interleave(loop.repetitions, {
            "with FSGSBASE": lambda: loop.traced(program, query, hits),
            "without": lambda: loop.traced(program, query, hits, environment=WITHOUT),
        }, what)
    for error in found.values():
        if isinstance(error, str):
            return row.fail(error)
    more = found["without"].against(found["with FSGSBASE"], lambda slow, fast: slow - fast)
    return row.set(more.median, more.spread,
                   note=f"a call takes {found['with FSGSBASE'].median:.1f} ns with it")


def bases_rows(folder, repetitions):
    """A call with its probes, the two ways in turn."""
    loop = HotLoop(folder, repetitions)
    both = entry_and_return("empty_frame")
    return [
        bases_row(loop, "count at an entry", select(entry("empty_frame"), COUNT), 1),
        bases_row(loop, "entry and return", select(both, COUNT), 2),
        bases_row(loop, "elapsed", select('return("hot_loop!empty_frame")',
                                          "calls = count(), ns = sum(e.elapsed)"), 1),
    ]
