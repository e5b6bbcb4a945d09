# SPDX-License-Identifier: Apache-2.0
"""What tracing costs whole programs: redis-server, the allocations of the Fay paper, lua."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from reading import has_loads
from table import Row, Sample, interleave, progress
from tracing import Bpftrace, Clew, Program, Redis, module_of

ALL_ENTRIES = 'from e in entry("redis-server!*") select new { calls = count() }'
ALL_BOTH = ('from e in entry("redis-server!*"), return("redis-server!*") '
            "select new { calls = count() }")


def share(traced, untraced):
    return 100 * traced / untraced


def slowdown(traced, untraced):
    return 100 * (traced / untraced - 1)


# --- redis-server ------------------------------------------------------------------------------

REDIS_QUERIES = [
    ("processCommand counted", 97,
     'from e in entry("redis-server!processCommand") select new { calls = count() }',
     "uprobe:PROGRAM:processCommand { @ = count(); }"),
    ("processCommand with elapsed", 95,
     'from e in return("redis-server!processCommand") select new { calls = count(), '
     "ns = sum(e.elapsed) }",
     "uprobe:PROGRAM:processCommand { @t[tid] = nsecs; } "
     "uretprobe:PROGRAM:processCommand { @ = sum(nsecs - @t[tid]); }"),
    ("zmalloc and zfree counted", 90,
     'from e in entry("redis-server!zmalloc"), entry("redis-server!zfree") '
     "select new { calls = count() }",
     "uprobe:PROGRAM:zmalloc, uprobe:PROGRAM:zfree { @ = count(); }"),
    ("memory outstanding by stack, one key in 64", 90,
     "from a in redis.live one in 64 groupby a.ustack "
     "select a.ustack, sum(a.size * a.weight) as bytes", None),
]


# By the client's argv[0] (redis 7.0, src/server.h): a text behind four pointers.
REDIS_BY_TEXT = ('from e in entry("redis-server!processCommand") '
                 "group by str(*(char**)(**(long**)(e.arg0 + 80) + 8)) "
                 "select new { calls = count() }")
REDIS_BY_TEXT_PEER = ("uprobe:PROGRAM:processCommand "
                      "{ @[str(*(uint64*)(*(uint64*)(*(uint64*)(arg0 + 80)) + 8))] = count(); }")


class RedisLoad:
    """Throughput of one redis-server, untraced and traced in turn."""

    def __init__(self, repetitions, requests):
        self.repetitions, self.requests = repetitions, requests
        self.sessions = []
        self.cpu = {}

    def untraced(self, redis, test):
        return self.measure(redis, test, "untraced")

    def measure(self, redis, test, kind):
        """Throughput; beside it, the server's own time a request, which a busy machine spares."""
        before = redis.cpu_seconds()
        value = redis.throughput(test, self.requests)
        spent = redis.cpu_seconds() - before
        self.cpu.setdefault(kind, []).append(spent / self.requests)
        return value

    def traced(self, redis, query, test, options=(), kind="clew"):
        with Clew(redis.pid, query, ["--yes", *options]) as session:
            value = self.measure(redis, test, kind)
        self.sessions.append(session)
        return value

    def under_bpftrace(self, redis, text, test):
        with Bpftrace(text):
            # It may be a hundred times slower.
            return redis.throughput(test, self.requests // 10)

    def copies_row(self, redis, measure, limit, query, test):
        """By the server's own time a request: jumps and copies, both against untraced."""
        row = Row(f"redis {test.upper()}: {measure}, on copies", f">= {limit} %", "%", limit,
                  at_most=False)
        self.cpu = {}
        found = interleave(self.repetitions, {
            "untraced": lambda: self.untraced(redis, test),
            "jumps": lambda: self.traced(redis, query, test, kind="jumps"),
            "copies": lambda: self.traced(redis, query, test, ["--copies"], "copies")}, row.measure)
        for sample in found.values():
            if isinstance(sample, str):
                return row.fail(sample)
        untraced, jumps, copies = (Sample(self.cpu[kind]) for kind in found)
        kept = untraced.against(copies, share)
        by_jumps = share(untraced.median, jumps.median)
        return row.set(kept.median, kept.spread, "",
                       f"by the server's CPU a request; jumps {by_jumps:.0f} %")

    def row(self, redis, measure, limit, query, test, peer=None):
        row = Row(f"redis {test.upper()}: {measure}", f">= {limit} %" if limit else "", "%", limit,
                  at_most=False)
        self.cpu = {}
        measures = {"untraced": lambda: self.untraced(redis, test),
                    "clew": lambda: self.traced(redis, query, test)}
        if peer and Bpftrace.usable():
            text = peer.replace("PROGRAM", module_of("redis-server"))
            measures["bpftrace"] = lambda: self.under_bpftrace(redis, text, test)
        found = interleave(self.repetitions, measures, row.measure)
        base = found["untraced"]
        if isinstance(found["clew"], str):
            return row.fail(found["clew"])
        kept = found["clew"].against(base, share)
        other = found.get("bpftrace")
        text = f"{share(other.median, base.median):.0f} %" if isinstance(other, Sample) else ""
        note = (f"untraced {base.median / 1e6:.2f} M/s, server CPU a request "
                f"{Sample(self.cpu['clew']).median / Sample(self.cpu['untraced']).median:.2f} x")
        return row.set(kept.median, kept.spread, text, note)


def redis_rows(repetitions, requests):
    """Some functions, then all functions, of a redis-server under redis-benchmark -P 16."""
    rows = []
    load = RedisLoad(repetitions, requests)
    with Redis() as redis:
        for measure, limit, query, peer in REDIS_QUERIES:
            rows.append(load.row(redis, measure, limit, query, "set", peer))
        rows.append(load.row(redis, "processCommand by its command's text",
                             90 if has_loads() else None, REDIS_BY_TEXT, "set",
                             REDIS_BY_TEXT_PEER))
        for measure, query, armed_ms, stopped_ms, limit in (
                ("all entries", ALL_ENTRIES, 150, 6, 83),
                ("all entries and exits", ALL_BOTH, 250, 10, 74)):
            rows += all_function_rows(load, redis, measure, query, (armed_ms, stopped_ms, limit))
        for test in ("set", "get"):
            rows.append(load.copies_row(redis, "all entries", 90, ALL_ENTRIES, test))
            rows.append(load.copies_row(redis, "all entries and exits", 80, ALL_BOTH, test))
        rows.append(cold_row(redis))
    return rows


def all_function_rows(load, redis, measure, query, limits):
    armed_ms, stopped_ms, share = limits
    load.sessions = []
    rows = [load.row(redis, measure, share, query, test) for test in ("set", "get")]
    armed = Row(f"redis, {measure}: command to armed", f"<= {armed_ms} ms", "ms", armed_ms)
    stopped = Row(f"redis, {measure}: process stopped", f"<= {stopped_ms} ms", "ms", stopped_ms)
    sessions = load.sessions[1:] or load.sessions  # The first may have read the symbols.
    if not sessions:
        return rows + [armed.fail("no session"), stopped.fail("no session")]
    times = Sample([session.armed_ms for session in sessions])
    stops = Sample([session.summary.get("stopped_ms", 0) for session in sessions])
    sites = sessions[0].summary.get("sites", 0)
    hits = max(sum(row.get("calls", 0) for row in session.rows) for session in sessions)
    armed.set(times.median, times.spread, note=f"{sites} sites")
    stopped.set(stops.median, stops.spread, note=f"{hits / 1e6:.0f} M hits")
    return rows + [armed, stopped]


def cold_row(redis):
    """The same with nothing cached: the cache folder is empty and new."""
    row = Row("redis, all entries: command to armed, cold", "<= 1000 ms", "ms", 1000)
    with tempfile.TemporaryDirectory(prefix="clew-cache-") as folder:
        previous = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            with Clew(redis.pid, ALL_ENTRIES, ["--yes"]) as session:
                pass
        except RuntimeError as error:
            return row.fail(str(error))
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if previous is not None:
                os.environ["XDG_CACHE_HOME"] = previous
    return row.set(session.armed_ms)


# --- the allocation benchmark ------------------------------------------------------------------

def allocation_rows(folder, repetitions, allocations):
    """Fay 5.3.2: the sum of the sizes of all allocations, at 1 to 500 threads."""
    query = 'from e in entry("libc.so.6!malloc") select new { bytes = sum(e.arg0) }'
    rows = []
    for threads in (1, 5, 10, 50, 500):
        row = Row(f"Fay 5.3.2, {threads} thread{'s' * (threads > 1)}: slowdown", "<= 5 %", "%", 5)
        with Program(folder / "allocations") as program:
            command = f"run {threads} {allocations}"
            program.ask(command)  # Warm.

            def untraced():
                return program.ask(command)["seconds"]

            def traced():
                with Clew(program.pid, query) as session:
                    answer = program.ask(command)
                found = sum(line.get("bytes", 0) for line in session.rows)
                # The C library allocates some itself, for each thread.
                if not answer["bytes"] <= found <= answer["bytes"] * 1.01:
                    raise RuntimeError(f"summed {found} of {answer['bytes']} bytes")
                return answer["seconds"]

            def under_bpftrace():
                libc = next(line.split()[-1] for line in
                            Path(f"/proc/{program.pid}/maps").read_text().splitlines()
                            if re.search(r"/libc\.so\.6$", line))
                with Bpftrace(f"uprobe:{libc}:malloc /pid == {program.pid}/ {{ @ = sum(arg0); }}"):
                    return program.ask(command)["seconds"]

            measures = {"untraced": untraced, "clew": traced}
            if Bpftrace.usable():
                measures["bpftrace"] = under_bpftrace
            # Many threads on few CPUs: the untraced program itself varies by a tenth.
            turns = repetitions * 3 if threads > 10 else repetitions
            found = interleave(turns, measures, row.measure)
        base = found["untraced"]
        if isinstance(found["clew"], str):
            rows.append(row.fail(found["clew"]))
            continue
        slower = found["clew"].against(base, slowdown)
        noise = [slowdown(value, base.median) for value in base.spread]
        other = found.get("bpftrace")
        peer = f"{slowdown(other.median, base.median):.0f} %" if isinstance(other, Sample) else ""
        rows.append(row.set(slower.median, slower.spread, peer,
                            f"untraced {noise[0]:+.1f} to {noise[1]:+.1f} %"))
    return rows


# --- lua ---------------------------------------------------------------------------------------

LUA_SCRIPT = """
local start = os.clock()
local words, sum = {}, 0
for i = 1, 150000 do
  local key = string.format("k%d", i % 1000)
  words[key] = (words[key] or 0) + #key
  sum = sum + (i * 7919) % 1013
end
local sorted = {}
for key, value in pairs(words) do sorted[#sorted + 1] = key .. value end
table.sort(sorted)
io.stderr:write(string.format("seconds %.6f\\n", os.clock() - start))
"""


def lua_row(repetitions):
    """All functions of the interpreter counted while it runs a script, from its start."""
    row = Row("lua5.4, all functions counted", "<= 1.5 x", "x", 1.5)
    lua = shutil.which("lua5.4")
    if lua is None:
        return row.fail("lua5.4 is not installed")
    module = Path(module_of("lua5.4")).name
    query = f'from e in entry("{module}!*") select new {{ calls = count() }}'
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA_SCRIPT)
        script.flush()
        sites = []

        def seconds_of(done):
            found = re.search(r"seconds ([0-9.]+)", done.stderr)
            if found is None:
                raise RuntimeError(done.stderr.strip())
            return float(found.group(1))

        def untraced():
            return seconds_of(subprocess.run([lua, script.name], capture_output=True, text=True,
                                             check=False))

        def traced():
            done = subprocess.run([Clew.command, "run", query, "--json", "-c",
                                   f"{lua} {script.name}"], capture_output=True, text=True,
                                  check=False)
            found = re.search(r'"sites": *(\d+)', done.stdout)
            sites.append(int(found.group(1)) if found else 0)
            return seconds_of(done)

        measures = {"untraced": untraced, "clew": traced}
        found = interleave(repetitions, measures, row.measure)
    if isinstance(found["clew"], str):
        return row.fail(found["clew"])
    ratio = found["clew"].against(found["untraced"], lambda traced, untraced: traced / untraced)
    return row.set(ratio.median, ratio.spread, note=f"{max(sites)} sites")


# --- memory ------------------------------------------------------------------------------------

def memory_rows(folder):
    """What one count query keeps resident in its target, and what each further thread adds."""
    query = 'from e in entry("hot_loop!empty_frame") select new { calls = count() }'
    used = Row("memory in the target, one count query", "<= 256 KB", "KB", 256)
    per_thread = Row("memory in the target, per thread", "<= 4 KB", "KB", 4)
    try:
        one, many = resident_kb(folder, query, 1), resident_kb(folder, query, 33)
    except RuntimeError as error:
        return [used.fail(str(error)), per_thread.fail(str(error))]
    return [used.set(one), per_thread.set((many - one) / 32)]


def resident_kb(folder, query, threads):
    """Resident memory of the mappings that appear with the session, after `threads` threads hit."""
    progress(f"memory, {threads} threads")
    with Program(folder / "hot_loop") as program:
        program.ask(f"time empty_frame {threads} 0 3 1000 0")
        before = mappings_kb(program.pid)
        with Clew(program.pid, query):
            program.ask(f"time empty_frame {threads} 0 3 1000 1000")
            after = mappings_kb(program.pid)
    found = sum(kb for place, kb in after.items() if place not in before)
    if found == 0:
        raise RuntimeError("no mapping of Clew was found in the target")
    return found


def mappings_kb(pid):
    """(start, name) -> resident KB of the mappings that could be Clew's: no stack, no heap."""
    found, place = {}, None
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = re.match(r"([0-9a-f]+)-[0-9a-f]+ (\S+) \S+ \S+ \d+ *(.*)", line)
        if head:
            low = int(head.group(1), 16) < 1 << 31
            ours = "memfd:" in head.group(3) or (low and not head.group(3)) or \
                ("x" in head.group(2) and not head.group(3))
            place = (head.group(1), head.group(3)) if ours else None
        elif place and line.startswith("Rss:"):
            found[place] = int(line.split()[1])
    return found
