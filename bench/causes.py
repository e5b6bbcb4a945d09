# SPDX-License-Identifier: Apache-2.0
"""What joins by cause in place cost: a hit that packs, unpacks or hands over."""

import tempfile

from table import Row, Sample, interleave
from tracing import Bpftrace, Clew, Program

BURSTS, CALLS = 15, 200_000
VOCABULARY = "".join(
    f'[[tracepoint]]\nname = "causes.{name}"\nfunction = "causes!{name}"\ncause = "{cause}"\n'
    f'exports = {{ object = "arg0" }}\n'
    for name, cause in (("begins", "begin"), ("puts_it", "put object"),
                        ("takes_it", "take object"), ("joins_it", "join object")))
QUERY = ('from u in entry("causes!unpacks") join p in KIND on p -> u '
         "select new { calls = count(), sum = sum(p.arg0) }")
PEER = {"packs": "uprobe:PROGRAM:packs { @a[tid] = arg0; }",
        "unpacks": "uprobe:PROGRAM:packs { @a[tid] = arg0; } "
                   "uprobe:PROGRAM:unpacks /@a[tid]/ { @ = sum(@a[tid]); }",
        "puts_it": "uprobe:PROGRAM:packs { @a[tid] = arg0; } "
                   "uprobe:PROGRAM:puts_it { @p[arg0] = @a[tid]; }",
        "takes_it": "uprobe:PROGRAM:packs { @a[tid] = arg0; } "
                    "uprobe:PROGRAM:puts_it { @p[arg0] = @a[tid]; } "
                    "uprobe:PROGRAM:takes_it { @a[tid] = @p[arg0]; }"}


class Vocabulary:
    """A file of it, while it is wanted."""

    def __init__(self, text):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.file.write(text)
        self.file.flush()

    def files(self):
        return ["--vocabulary", self.file.name]

    def arguments(self):
        return ["--plan", "in-place", *self.files()]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.file.close()


def time(program, function, share=1):
    return program.ask(f"time {function} {BURSTS} {CALLS // share}")


def traced(program, function, kind, vocabulary):
    """ns a call. All that was unpacked is counted, or the figure means nothing."""
    packs = 'entry("causes!packs")'
    query = QUERY.replace("KIND", f"{kind}({packs})" if kind else packs)
    with Clew(program.pid, query, vocabulary.arguments()) as session:
        answer = time(program, function)
    wanted = answer["calls"] if function == "unpacks" else 0
    counted = session.rows[0]["calls"] if session.rows else 0
    if counted != wanted or session.lost():
        raise RuntimeError(f"{counted} of {wanted} joined, {session.lost()} lost")
    return answer["ns_per_call"]


def under_bpftrace(program, function):
    with Bpftrace(PEER[function].replace("PROGRAM", program.path)):
        return time(program, function, share=20)["ns_per_call"]


def hit_row(program, repetitions, vocabulary, what):
    measure, function, kind, limit = what
    row = Row(f"in place: {measure}", f"<= {limit} ns" if limit else "", "ns", limit)
    time(program, function)  # Warm.
    measures = {"untraced": lambda: time(program, function)["ns_per_call"],
                "clew": lambda: traced(program, function, kind, vocabulary)}
    if function in PEER and Bpftrace.usable():
        measures["bpftrace"] = lambda: under_bpftrace(program, function)
    found = interleave(repetitions, measures, row.measure)
    base, other = found["untraced"], found.get("bpftrace")
    if isinstance(found["clew"], str):
        return row.fail(found["clew"])
    net = found["clew"].against(base, lambda mine, plain: mine - plain)
    peer = f"{other.median - base.median:,.0f} ns" if isinstance(other, Sample) else ""
    return row.set(net.median, net.spread, peer)


HITS = [("a request begins", "begins", "First", None),
        ("pack, the most recent", "packs", "MostRecent", 80),
        ("pack, the first is there", "packs", "First", 80),
        ("pack, added to a sum of all", "packs", None, 80),
        ("unpack, and count", "unpacks", "First", 100),
        ("unpack, a sum of all", "unpacks", None, 100),
        ("put (a branch)", "puts_it", "First", 120),
        ("take", "takes_it", "First", 250),
        ("join", "joins_it", "First", 250)]


def cause_rows(folder, repetitions):
    with Program(folder / "causes") as program, Vocabulary(VOCABULARY) as vocabulary:
        return [hit_row(program, repetitions, vocabulary, what) for what in HITS]
