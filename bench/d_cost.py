# SPDX-License-Identifier: Apache-2.0
"""What D programs cost: a firing in the kernel, a clock on all CPUs, the start of the command."""

import os
import re
import subprocess
import time
from pathlib import Path

from probe_cost import HotLoop
from table import Row, Sample, interleave, progress
from tracing import Bpftrace, Clew, Dtrace, Program

CALLS, BURSTS = 100_000, 15
UPROBE_CALLS = 10_000
INLINE_CALLS = 300_000
# Long bursts: each is to see some hundred firings of a clock.
CLOCK_CALLS, CLOCK_BURSTS, CLOCK_DEPTH = 2_000_000, 5, 20

ENTRY = "syscall::getppid:entry"
LATENCY = (ENTRY + " { self->start = timestamp; } syscall::getppid:return /self->start/ "
           "{ @ = quantize(timestamp - self->start); self->start = 0; }")
STACKS = "profile-997 { @[ustack()] = count(); }"
MANY = "syscall:::, sdt::: { @[probefunc] = count(); }"
MANY_AT_LEAST = 2000

PEER_ENTRY = "tracepoint:syscalls:sys_enter_getppid"
PEER_RETURN = "tracepoint:syscalls:sys_exit_getppid"
PEER_LATENCY = (PEER_ENTRY + " { @t[tid] = nsecs; } " + PEER_RETURN + " /@t[tid]/ "
                "{ @ = hist(nsecs - @t[tid]); delete(@t[tid]); }")


class SystemCalls(HotLoop):
    """A system call in a hot loop: net cost of a D program per call."""

    def time(self, program, function="system_call", calls=CALLS, **unused):
        return program.ask(f"time {function} 1 0 {BURSTS} {calls} 0")

    def traced(self, program, query, hits_per_call, **how):
        """ns per call. Other programs may make the call as well: no count may be too small, and
        one that tells programs apart must be exact."""
        target = ["-p", str(program.pid)] if "$target" in query else []
        with Dtrace(query, target) as session:
            answer = self.time(program, **how)
        expected = answer["calls"] * hits_per_call
        rows = how.get("rows")
        counted = session.total(rows.replace("PID", str(program.pid)) if rows else r"\d")
        if session.losses() or counted < expected or (rows and counted > expected):
            raise RuntimeError(f"counted {counted} of {expected} hits {session.losses()}".strip())
        return answer["ns_per_call"]

    def under_bpftrace(self, program, text, **how):
        with Bpftrace(text):
            return self.time(program, **how)["ns_per_call"]


def call_rows(loop):
    """Rows about single system calls. The first is the kernel's own price: its slow way into every
    call, its tracepoint, and a program that ends at once."""
    bare = loop.row("D: a call without a probe, beside a probe", None,
                    "syscall::swapoff:entry { @ = count(); }", hits_per_call=0,
                    peer="tracepoint:syscalls:sys_enter_swapoff { @ = count(); }",
                    note="so much of what follows is the kernel's tracepoint")
    rows = [
        loop.row("D: count of a system call", 60, ENTRY + " { @ = count(); }",
                 peer=PEER_ENTRY + " { @ = count(); }"),
        loop.row("D: count by pid", 110, ENTRY + " { @[pid] = count(); }", rows=r"^ *PID ",
                 peer=PEER_ENTRY + " { @[pid] = count(); }"),
        # getppid has no arguments: bpftrace finds its first at the tracepoint of all calls only.
        loop.row("D: count by argument", 110, ENTRY + " { @[arg0] = count(); }",
                 peer="tracepoint:raw_syscalls:sys_enter /args->id == 110/ "
                      "{ @[args->args[0]] = count(); }"),
        loop.row("D: count where moving_average() says so", None,
                 ENTRY + " /moving_average(arg0) != 77/ { @ = count(); }",
                 note="a function of an extension"),
        loop.row("D: count where sketch_count() says so", None,
                 ENTRY + " /sketch_count(1) != 0/ { @ = count(); }", note="the same"),
        loop.row("D: latency, entry to return, quantize", 200, LATENCY, peer=PEER_LATENCY,
                 note="two firings"),
        loop.row("D: all entries by (execname, probefunc)", 150,
                 "syscall:::entry { @[execname, probefunc] = count(); }",
                 rows=r"hot_loop +getppid ", peer=PEER_ENTRY + " { @[comm, probe] = count(); }",
                 note="bpftrace: at one call"),
    ]
    return [bare] + [beyond(row, bare) for row in rows]


def beyond(row, bare):
    """Notes what of a row is not the kernel's tracepoint."""
    if row.value is None or bare.value is None:
        return row
    firings = 2 if row.note == "two firings" else 1
    ours = f"{row.value - firings * bare.value:.0f} ns beyond the tracepoint"
    row.note = ", ".join(part for part in (row.note, ours) if part)
    return row


def clock_row(folder, repetitions):
    """What a clock on all CPUs takes of a program that keeps all of them busy."""
    row = Row("D: profile-997, ustack, all CPUs busy", "<= 2 %", "%", 2)
    command = (f"time empty_frame {os.cpu_count()} {CLOCK_DEPTH} {CLOCK_BURSTS} {CLOCK_CALLS} 0")
    firings = []
    with Program(folder / "hot_loop") as program:
        program.ask(command)  # Warm.

        def untraced():
            return program.ask(command)["ns_per_call"]

        def traced():
            with Dtrace(STACKS) as session:
                value = untraced()
            firings.append(session.total(r"^ +\d+$"))
            return value

        def under_bpftrace():
            with Bpftrace("profile:hz:997 { @[ustack] = count(); }"):
                return untraced()

        measures = {"untraced": untraced, "clew": traced}
        if Bpftrace.usable():
            measures["bpftrace"] = under_bpftrace
        found = interleave(repetitions, measures, row.measure)
    base, other = found["untraced"], found.get("bpftrace")
    if isinstance(found["clew"], str):
        return row.fail(found["clew"])
    slower = found["clew"].against(base, lambda mine, plain: 100 * (mine / plain - 1))
    noise = [100 * (value / base.median - 1) for value in base.spread]
    peer = f"{100 * (other.median / base.median - 1):.1f} %" if isinstance(other, Sample) else ""
    return row.set(slower.median, slower.spread, peer,
                   f"{max(firings)} firings; untraced {noise[0]:+.1f} to {noise[1]:+.1f} %")


def first_firing_ms(command, answer):
    """From the start of a command to the line that its first firing prints."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        said = any(answer in line for line in process.stdout)
        taken = (time.monotonic() - start) * 1000
        if not said:
            raise RuntimeError(process.stderr.read().strip() or "nothing was printed")
        process.wait()
    return taken


def start_rows(folder, repetitions):
    """A one-line script from the command to what its first firing prints; its memory."""
    started = Row("D: one line, command to first firing", "<= 150 ms", "ms", 150)
    text = 'printf("fired\\n"); exit'
    ours = [Clew.command, "dtrace", "-q", "-n", ENTRY + " { " + text + "(0); }"]
    peer = ["bpftrace", "-e", PEER_ENTRY + " { " + text + "(); }"]
    measures = {"clew": lambda: first_firing_ms(ours, "fired")}
    if Bpftrace.usable():
        measures["bpftrace"] = lambda: first_firing_ms(peer, "fired")
    with Program(folder / "hot_loop") as program:
        # A call each millisecond, for longer than all commands take.
        program.process.stdin.write("time system_call 1 0 4096 1 1000\n" * 100)
        program.process.stdin.flush()
        found = interleave(repetitions, measures, started.measure)
        program.process.kill()
    other = found.get("bpftrace")
    peer_text = f"{other.median:.0f} ms" if isinstance(other, Sample) else ""
    if isinstance(found["clew"], str):
        started.fail(found["clew"])
    else:
        started.set(found["clew"].median, found["clew"].spread, peer_text)
    return [started, memory_row()]


def memory_row():
    row = Row("D: resident memory of the command", "<= 60 MB", "MB", 60)
    with Dtrace(ENTRY + " { @[pid] = count(); }") as session:
        now, most = resident_mb(session.process.pid)
    peer = ""
    try:
        if Bpftrace.usable():
            with Bpftrace(PEER_ENTRY + " { @[pid] = count(); }") as session:
                peer = f"{resident_mb(session.process.pid)[0]:.0f} MB"
    except RuntimeError:
        pass  # This kernel has not the peer's tracepoint.
    return row.set(now, peer=peer, note=f"at most {most:.1f} MB")


def resident_mb(pid):
    """Now, and at most so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    kb = {name: int(value) for name, value in re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status)}
    return kb["VmRSS"] / 1024, kb["VmHWM"] / 1024


def many_row(repetitions):
    """From the command to the moment when BEGIN's clause has printed: all probes are enabled."""
    row = Row(f"D: {MANY_AT_LEAST:,} probes enabled", "<= 2 s", "s", 2)
    sessions = []

    def enabled():
        with Dtrace(MANY, quiet=False) as session:
            pass
        if session.matched < MANY_AT_LEAST:
            raise RuntimeError(f"only {session.matched} probes exist")
        sessions.append(session)
        return session.armed_ms / 1000

    found = interleave(repetitions, {"clew": enabled}, row.measure)["clew"]
    if isinstance(found, str):
        return row.fail(found)
    ended = Sample([session.ended_ms / 1000 for session in sessions])
    note = f"{sessions[0].matched - 1:,} probes; from Ctrl-C to the end {ended.median:.1f} s"
    return row.set(found.median, found.spread, note=note)


# (what, limit in ns, the script, its peer, firings for each call, frames below the function)
USER = [
    ("D: count of a function's calls, inline", 5,
     "pid$target:hot_loop:empty_frame:entry { @ = count(); }",
     "uprobe:PROGRAM:empty_frame { @ = count(); }", 1, 0),
    ("D: count by probefunc, inline", 15,
     "pid$target:hot_loop:empty_frame:entry { @[probefunc] = count(); }",
     "uprobe:PROGRAM:empty_frame { @[probe] = count(); }", 1, 0),
    ("D: elapsed, entry and return, inline", 35,
     "pid$target:hot_loop:empty_frame:entry { self->ts = timestamp; } "
     "pid$target:hot_loop:empty_frame:return /self->ts/ "
     "{ @ = count(); @t = sum(timestamp - self->ts); self->ts = 0; }",
     "uprobe:PROGRAM:empty_frame { @t[tid] = nsecs; } uretprobe:PROGRAM:empty_frame /@t[tid]/ "
     "{ @ = count(); @s = sum(nsecs - @t[tid]); delete(@t[tid]); }", 2, 0),
    ("D: count by ustack(10), inline", 1500,
     "pid$target:hot_loop:empty_frame:entry { @[ustack(10)] = count(); }",
     "uprobe:PROGRAM:empty_frame { @[ustack(10)] = count(); }", 1, 20),
]


class Functions(HotLoop):
    """A function in a hot loop: net cost of a D program per call, inside the process and by the
    kernel's uprobes."""

    depth = 0

    def loop(self, program, calls):
        return program.ask(f"time empty_frame 1 {self.depth} {BURSTS} {calls} 0")

    def traced(self, program, query, calls, flags=()):
        """ns per call. The first aggregation counts, and must be exact."""
        with Dtrace(query, ["-p", str(program.pid), *flags]) as session:
            answer = self.loop(program, calls)
        counts = [int(found[1]) for line in session.lines
                  if (found := re.search(r"(\d+) *$", line))]
        if session.losses() or answer["calls"] not in counts:
            raise RuntimeError(f"counted {counts} of {answer['calls']} {session.losses()}".strip())
        return answer["ns_per_call"]

    def row(self, what, limit, query, peer, firings, depth):
        row = Row(what, f"<= {limit:,} ns", "ns", limit)
        self.depth = depth
        with Program(self.path) as program:
            self.loop(program, INLINE_CALLS)  # Warm.
            measures = {
                "untraced": lambda: self.loop(program, INLINE_CALLS)["ns_per_call"],
                "inline": lambda: self.traced(program, query, INLINE_CALLS),
                "uprobes": lambda: self.traced(program, query, UPROBE_CALLS,
                                               ["-x", "useruprobes"]),
            }
            if Bpftrace.usable():
                text = peer.replace("PROGRAM", str(self.path))

                def under_bpftrace():
                    with Bpftrace(text):
                        return self.loop(program, UPROBE_CALLS)["ns_per_call"]

                measures["bpftrace"] = under_bpftrace
            found = interleave(self.repetitions, measures, what)
        base, ours = found["untraced"], found["inline"]
        if isinstance(ours, str):
            return row.fail(ours)

        def net(name):
            other = found.get(name)
            return f"{other.median - base.median:,.0f} ns" if isinstance(other, Sample) else ""

        value = ours.against(base, lambda traced, untraced: traced - untraced)
        uprobes = found["uprobes"] if isinstance(found["uprobes"], str) else net("uprobes")
        note = f"by uprobes: {uprobes}" + (", two firings" if firings == 2 else "")
        return row.set(value.median, value.spread, net("bpftrace"), note)


def d_rows(folder, repetitions):
    """The rows of the table about `clew dtrace`."""
    rows = call_rows(SystemCalls(folder, repetitions))
    rows += [Functions(folder, repetitions).row(*row) for row in USER]
    rows.append(clock_row(folder, repetitions))
    rows += start_rows(folder, repetitions)
    rows.append(many_row(repetitions))
    progress("")
    return rows
