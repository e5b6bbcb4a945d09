# SPDX-License-Identifier: Apache-2.0
"""What joins by cause in place cost: a hit that packs, unpacks or hands over, and a request."""

import tempfile

from table import Row, Sample, interleave
from tracing import Bpftrace, Clew, Program, Redis

BURSTS, CALLS = 15, 200_000
VOCABULARY = "".join(
    f'[[tracepoint]]\nname = "causes.{name}"\nfunction = "causes!{name}"\ncause = "{cause}"\n'
    f'exports = {{ object = "arg0" }}\n'
    for name, cause in (("begins", "begin"), ("puts_it", "put object"),
                        ("takes_it", "take object"), ("joins_it", "join object")))
QUERY = ('from u in entry("causes!unpacks") join p in KIND(entry("causes!packs")) on p -> u '
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

    def arguments(self):
        return ["--plan", "in-place", "--vocabulary", self.file.name]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.file.close()


def time(program, function, share=1):
    return program.ask(f"time {function} {BURSTS} {CALLS // share}")


def traced(program, function, kind, vocabulary):
    """ns a call. All that was unpacked is counted, or the figure means nothing."""
    query = QUERY.replace("KIND(", f"{kind}(") if kind else QUERY.replace("KIND", "")
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


# --- a request of redis (Pivot Tracing, table 5) -------------------------------------------------

REDIS = ('[[tracepoint]]\nname = "bench.begin"\nfunction = "redis-server!processCommand"\n'
         'cause = "begin"\n[[tracepoint]]\nname = "bench.end"\n'
         'function = "redis-server!resetClient"\ncause = "end"\n')
# Where a request begins and ends alone, and with one value.
TUPLES = [
    ("nothing is packed", 0.3, 'from u in entry("redis-server!flushAppendOnlyFile") join p in '
     'First(entry("redis-server!flushSlavesOutputBuffers")) on p -> u select new { n = count() }'),
    ("one tuple", 1, 'from u in entry("redis-server!lookupKey") join p in '
     'First(entry("redis-server!processCommand")) on p -> u '
     "select new { n = count(), sum = sum(p.arg0) }"),
]


def redis_rows(repetitions, requests):
    rows = []
    with Redis() as redis, Vocabulary(REDIS) as vocabulary:
        def spent(query=None):
            """CPU time of the server a request, in ns."""
            def run():
                before = redis.cpu_seconds()
                redis.throughput("get", requests, pipeline=1)
                return (redis.cpu_seconds() - before) / requests * 1e9
            if query is None:
                return run()
            with Clew(redis.pid, query, vocabulary.arguments()):
                return run()
        spent()
        for what, limit, query in TUPLES:
            row = Row(f"in place: redis GET, {what}", f"<= {limit} %", "%", limit)
            measures = {"untraced": spent, "clew": lambda query=query: spent(query)}
            found = interleave(repetitions, measures, row.measure)
            for sample in found.values():
                if isinstance(sample, str):
                    rows.append(row.fail(sample))
                    break
            else:
                more = found["clew"].against(found["untraced"],
                                             lambda mine, plain: 100 * (mine / plain - 1))
                rows.append(row.set(more.median, more.spread, "", "of the server's CPU a request, "
                                    f"untraced {found['untraced'].median:,.0f} ns"))
    return rows


HITS = [("a request begins", "begins", "First", None),
        ("pack, the most recent", "packs", "MostRecent", 80),
        ("pack, the first is there", "packs", "First", 80),
        ("pack, added to a sum of all", "packs", None, 80),
        ("unpack, and count", "unpacks", "First", 100),
        ("unpack, a sum of all", "unpacks", None, 100),
        ("put (a branch)", "puts_it", "First", 120),
        ("take", "takes_it", "First", 250),
        ("join", "joins_it", "First", 250)]


def cause_rows(folder, repetitions, requests):
    with Program(folder / "causes") as program, Vocabulary(VOCABULARY) as vocabulary:
        rows = [hit_row(program, repetitions, vocabulary, what) for what in HITS]
    return rows + redis_rows(repetitions, requests)
