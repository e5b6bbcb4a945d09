# SPDX-License-Identifier: Apache-2.0
"""What it costs to count a function's calls by stack."""

from probe_cost import HotLoop, UPROBE, entry
from table import Row, Sample, interleave
from tracing import Bpftrace, Program

DEPTH = 40


def stack_row(loop, frames, limit):
    """Each time in a new process: it matters where in their pages its frames lie."""
    name = f"count by a stack of {frames} frames"
    row = Row(name, f"<= {limit} ns" if limit else "", "ns", limit)
    query = (f"from e in {entry('empty_frame')} group by e.ustack({frames}) "
             "select new { calls = count() }")
    peer = f"{UPROBE} {{ @[ustack({frames})] = count(); }}".replace("PROGRAM", str(loop.path))

    def in_a_process(measure):
        with Program(loop.path) as program:
            loop.time(program, depth=DEPTH)  # Warm.
            return measure(program)

    measures = {
        "untraced": lambda: in_a_process(
            lambda program: loop.time(program, depth=DEPTH)["ns_per_call"]),
        "clew": lambda: in_a_process(
            lambda program: loop.traced(program, query, 1, depth=DEPTH)),
    }
    if Bpftrace.usable():
        measures["bpftrace"] = lambda: in_a_process(
            lambda program: loop.under_bpftrace(program, peer, depth=DEPTH))
    found = interleave(loop.repetitions, measures, name)
    for key in ("untraced", "clew"):
        if isinstance(found[key], str):
            return row.fail(found[key])
    base = found["untraced"]
    net = found["clew"].against(base, lambda traced, untraced: traced - untraced)
    other = found.get("bpftrace")
    text = f"{other.median - base.median:,.0f} ns" if isinstance(other, Sample) else ""
    return row.set(net.median, net.spread, text)


def stack_rows(folder, repetitions):
    """Frames that are read from the thread's own pages, and from several."""
    loop = HotLoop(folder, repetitions)
    return [stack_row(loop, 10, 1500), stack_row(loop, 30, None)]
