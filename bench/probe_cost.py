# SPDX-License-Identifier: Apache-2.0
"""What one hit of a probe costs: a function in a hot loop, traced and untraced in turn."""

from table import Row, Sample, interleave
from tracing import Bpftrace, Clew, Program

CALLS = 1_000_000
BURSTS = 15
DEPTH = 20
SLOW_SHARE = 20  # One call in so many, where a call takes a microsecond and more.
# An eighth of a ring; the collector empties it while the program rests. The first bursts touch the
# pages of the ring for the first time; the median does not see them.
EVENT_CALLS, EVENT_BURSTS, EVENT_REST_US = 4000, 24, 150_000


def select(sources, what):
    return f"from e in {sources} select new {{ {what} }}"


def entry(function):
    return f'entry("hot_loop!{function}")'


def entry_and_return(function):
    return f'entry("hot_loop!{function}"), return("hot_loop!{function}")'


class HotLoop:
    """One run of hot_loop: net cost of a query, and of a bpftrace program, per call."""

    def __init__(self, folder, repetitions):
        self.path, self.repetitions = folder / "hot_loop", repetitions

    def time(self, program, function="empty_frame", threads=1, depth=0, events=0, share=1):
        """Runs the loop, or one part in `share` of it; with events, so many in each burst."""
        bursts, calls, rest = (EVENT_BURSTS, events, EVENT_REST_US) if events else (
            BURSTS, CALLS // (20 if depth else 1) // threads // share, 0)
        return program.ask(f"time {function} {threads} {depth} {bursts} {calls} {rest}")

    def traced(self, program, query, hits_per_call, environment=None, **how):
        """ns per call while traced. The count must be exact, or the figure means nothing."""
        with Clew(program.pid, query, environment=environment) as session:
            answer = self.time(program, **how)
        expected = answer["calls"] * hits_per_call
        if how.get("events"):
            counted = len(session.rows)
        else:
            counted = sum(row.get("calls", 0) for row in session.rows)
        if counted + session.lost() != expected or session.lost() > expected // 100:
            raise RuntimeError(f"counted {counted} and lost {session.lost()} of {expected} hits")
        return answer["ns_per_call"]

    def under_bpftrace(self, program, text, **how):
        with Bpftrace(text):
            return self.time(program, **{**how, "share": SLOW_SHARE})["ns_per_call"]

    def net(self, what, query, hits_per_call=1, peer=None, **how):
        """(Sample of net ns, text of the peer's net ns or '') or an error's text."""
        with Program(self.path) as program:
            self.time(program, **how)  # Warm.
            measures = {
                "untraced": lambda: self.time(program, **how)["ns_per_call"],
                "clew": lambda: self.traced(program, query, hits_per_call, **how),
            }
            if peer and Bpftrace.usable():
                text = peer.replace("PROGRAM", str(self.path))
                measures["bpftrace"] = lambda: self.under_bpftrace(program, text, **how)
            found = interleave(self.repetitions, measures, what)
        base = found["untraced"]
        if isinstance(found["clew"], str):
            return found["clew"], ""
        net = found["clew"].against(base, lambda traced, untraced: traced - untraced)
        other = found.get("bpftrace")
        return net, f"{other.median - base.median:,.0f} ns" if isinstance(other, Sample) else ""

    def row(self, measure, limit, query, note="", **how):
        row = Row(measure, f"<= {limit} ns" if limit else "", "ns", limit)
        net, peer = self.net(measure, query, **how)
        if isinstance(net, str):
            return row.fail(net)
        return row.set(net.median, net.spread, peer, note)

    def stamps(self, function):
        """Sample of what the rdtsc instructions in `function` cost a call, without any probe."""
        with Program(self.path) as program:
            measures = {name: lambda name=name: self.time(program, function=name)["ns_per_call"]
                        for name in ("empty_frame", function)}
            found = interleave(self.repetitions, measures, f"rdtsc, {function}")
        return found[function].against(found["empty_frame"], lambda with_, without: with_ - without)


UPROBE = "uprobe:PROGRAM:empty_frame"
URETPROBE = "uretprobe:PROGRAM:empty_frame"
COUNT = "calls = count()"
EVENT = select(entry("empty_frame"), "time = e.time, first = e.arg0, second = e.arg1")


def cost_rows(folder, repetitions):
    """The rows of the table about single hits."""
    loop = HotLoop(folder, repetitions)
    one, both = entry("empty_frame"), entry_and_return("empty_frame")
    one_stamp, two_stamps = loop.stamps("one_stamp"), loop.stamps("two_stamps")
    rows = [
        loop.row("count at a hot empty function", 5, select(one, COUNT),
                 peer=UPROBE + " { @ = count(); }"),
        loop.row("the same, first instruction lea", 5, select(entry("empty_leaf"), COUNT),
                 function="empty_leaf", peer="uprobe:PROGRAM:empty_leaf { @ = count(); }"),
        loop.row("the same, first instruction nop", 5, select(entry("empty_nop"), COUNT),
                 function="empty_nop", peer="uprobe:PROGRAM:empty_nop { @ = count(); }"),
        loop.row("entry and return, count of both", 8, select(both, COUNT), hits_per_call=2,
                 peer=UPROBE + " { @a = count(); } " + URETPROBE + " { @b = count(); }"),
        loop.row("entry and return with elapsed", 35,
                 select('return("hot_loop!empty_frame")', "calls = count(), ns = sum(e.elapsed)"),
                 note=f"two rdtsc alone, without a probe: {two_stamps.median:.1f} ns",
                 peer=UPROBE + " { @t[tid] = nsecs; } " + URETPROBE +
                 " { @ns = sum(nsecs - @t[tid]); }"),
        loop.row("group by an argument, count", 15,
                 f"from e in {one} group by e.arg0 select new {{ key = e.arg0, calls = count() }}",
                 peer=UPROBE + " { @[arg0] = count(); }"),
    ]
    event, peer = loop.net("a 32-byte event", EVENT, events=EVENT_CALLS)
    row = Row("emit a 32-byte event", "<= 25 ns", "ns", 25)
    rows.append(row.fail(event) if isinstance(event, str) else row.set(
        event.median, event.spread, peer,
        f"size, time and two words; one rdtsc alone: {one_stamp.median:.1f} ns"))
    rows.append(deep_row(loop, event))
    return rows


def deep_row(loop, plain):
    """The event again, with 20 frames built before each call (Fay, table III)."""
    row = Row("the event through 20 nested frames", "<= 1.3 x", "x", 1.3)
    deep, _ = loop.net("deep event", EVENT, events=EVENT_CALLS, depth=DEPTH)
    for error in (plain, deep):
        if isinstance(error, str):
            return row.fail(error)
    ratio = [value / plain.median for value in deep.spread]
    return row.set(deep.median / plain.median, ratio, note=f"{deep.median:.1f} ns")


def scaling_rows(folder, repetitions):
    """The cost of a count against the number of threads and of sites: it must not grow."""
    loop = HotLoop(folder, repetitions)
    rows = []
    for threads in (1, 2, 4, 16):
        rows.append(loop.row(f"count, {threads} thread{'s' * (threads > 1)}", 5,
                             select(entry("empty_frame"), COUNT), threads=threads))
    for sites, pattern in ((1, "many_0000"), (100, "many_00??"), (10_000, "many_????")):
        rows.append(loop.row(f"count, {sites:,} site{'s' * (sites > 1)} armed", 5,
                             select(entry(pattern), COUNT), function="many_0000"))
    return rows
