# SPDX-License-Identifier: Apache-2.0
"""Scripts about functions and static probes of programs."""

import re
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from bench import (count_is, expect, lines_are, number, POSTGRES, row, Skip, TIMEOUT_S,
                   total_quantized, Wrong)


def calls(bench):
    output, _ = bench.around_victim("calls", "functions", 10, ["d_victim"])
    for name, wanted in (("outermost", 10), ("middle", 10), ("innermost", 20)):
        count_is(output, rf"^  {name} +(\d+)$", wanted)


def flow(bench):
    output, _ = bench.around_victim("flow", "functions", 2, ["d_victim"])
    inner = r"(?: *\d+ +-> innermost +0x{}\n *\d+ +<- innermost +0x{}\n)"
    wanted = (r" *\d+( +)-> outermost +0x1\n *\d+\1  -> middle +0x1\n" + inner.format(1, 2) +
              inner.format(2, 3) + r" *\d+\1  <- middle +0x5\n *\d+\1<- outermost +0x5\n")
    expect(re.search(wanted, output), "outermost, middle and two innermost, nested", output)


def function_latency(bench):
    output, _ = bench.around_victim("function_latency", "functions", 50, ["d_victim", "middle"])
    expect(total_quantized(output) == 50, "50 calls", output)


def cxx_exceptions(bench):
    output, _ = bench.around_victim("cxx_exceptions", "throws", 33)
    sums = [int(it) for it in re.findall(r"^ +(\d+)$", output, re.MULTILINE)]
    expect(sums == [33], "33 exceptions from one place", output)


class Redis:
    """A redis server of its own, on a socket in the folder of the run."""

    def __init__(self, bench):
        if not shutil.which("redis-server"):
            raise Skip("no redis-server")
        self.socket = bench.folder / "redis.sock"
        self.process = bench.start(
            ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", ""],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in self.process.stdout:
            if "ready to accept" in line.lower():
                return
        raise Wrong("redis-server does not start")

    def cli(self, *words):
        subprocess.run(["redis-cli", "-s", str(self.socket), *words], check=True,
                       capture_output=True, timeout=TIMEOUT_S)

    def benchmark(self, count):
        subprocess.run(["redis-benchmark", "-s", str(self.socket), "-c", "1", "-n", str(count),
                        "-t", "set,get", "-q"], check=True, capture_output=True, timeout=TIMEOUT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=TIMEOUT_S)


def redis_commands(bench):
    with Redis(bench) as redis:
        output, _ = bench.beside("redis_commands", redis.process.pid, lambda: redis.benchmark(500))
        for name in ("SET", "GET"):
            found = row(output, rf"^{name} +(\d+) +(\d+) +(\d+)$")
            count, average, longest = map(int, found.groups())
            expect(count == 500 and longest >= average > 0, f"500 of {name}", output)


PYTHON = """
import gc
def inner(n):
    return n
def outer():
    for i in range(3):
        inner(i)
for i in range(20):
    outer()
gc.collect()
import colorsys
try:
    import d_missing
except ImportError:
    pass
"""


def around_python(bench, script, arguments=()):
    notes = subprocess.run(["readelf", "-n", "/usr/bin/python3"], check=False, capture_output=True,
                           text=True).stdout
    if "function__entry" not in notes:
        raise Skip("/usr/bin/python3 has no USDT probes")
    program = bench.folder / "d_flow.py"
    program.write_text(PYTHON)
    return bench.around(script, f"/usr/bin/python3 {program}", arguments)[0]


def python_calls(bench):
    output = around_python(bench, "python_calls")
    count_is(output, r"^d_flow.py +inner +(\d+)$", 60)
    count_is(output, r"^d_flow.py +outer +(\d+)$", 20)


def python_imports(bench):
    output = around_python(bench, "python_imports")
    lines_are(output, r"^ *\d+ +colorsys$", 1)
    lines_are(output, r"^ *\d+ +d_missing \(missing\)$", 1)


def python_gc(bench):
    output = around_python(bench, "python_gc")
    expect(re.search(r"^ +2 *$", output, re.MULTILINE) and total_quantized(output) >= 1,
           "a pause of generation 2", output)
    expect(re.search(r"^objects freed: \d+$", output, re.MULTILINE), "freed objects", output)


def sqlite_statements(bench):
    if not shutil.which("sqlite3"):
        raise Skip("no sqlite3")
    statements = ("create table t(a);", "insert into t values(1),(2),(3);", "select a from t;")
    script = bench.folder / "statements.sql"
    script.write_text("\n".join(statements) + "\n")
    output, _ = bench.around("sqlite_statements", f"sqlite3 -init {script} :memory: .quit")
    steps = number(output, r"^ *(\d+) +\d+ select a from t;")
    expect(steps == 4, "3 rows and the end", output)
    # Of a file: each command's first statement makes SQLite ask for the schema.
    file = bench.folder / "statements.db"
    subprocess.run(["sqlite3", str(file), *statements], check=True, capture_output=True)
    output, _ = bench.around("sqlite_statements",
                             f"sqlite3 {file} 'select count(*) from t' 'select 22'")
    for text in ("select count", "select 22"):
        expect(number(output, rf"^ *(\d+) +\d+ {text}") == 2, f"a row of {text}, the end", output)


class Postgres:
    """A server of its own, which does not run as root; its socket is in the folder of its data."""

    ONE_AT_A_TIME = threading.Lock()  # The scripts see all servers.

    def __init__(self):
        if not POSTGRES:
            raise Skip("no PostgreSQL")
        self.programs = POSTGRES[-1]
        notes = subprocess.run(["readelf", "-n", str(self.programs / "postgres")], check=False,
                               capture_output=True, text=True).stdout
        if "query__start" not in notes:
            raise Skip("PostgreSQL has no USDT probes")
        self.folder = Path(tempfile.mkdtemp(prefix="clew-d-postgres-"))
        shutil.chown(self.folder, "nobody")
        data = str(self.folder / "data")
        as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        subprocess.run([*as_nobody, str(self.programs / "initdb"), "-D", data, "-U", "tester", "-A",
                        "trust", "--no-sync", "--locale=C", "-E", "UTF8"], check=True,
                       capture_output=True, timeout=TIMEOUT_S, cwd=self.folder)
        self.process = subprocess.Popen(
            [*as_nobody, str(self.programs / "postgres"), "-D", data, "-k", str(self.folder), "-c",
             "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"],
            cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        for line in self.process.stderr:
            if "ready to accept" in line:
                return
        raise Wrong("postgres does not start")

    def ask(self, *queries):
        """What a new backend answers, line by line."""
        words = [word for query in queries for word in ("-c", query)]
        done = subprocess.run(
            [str(self.programs / "psql"), "-h", str(self.folder), "-U", "tester", "-d", "postgres",
             "-qAtX", *words], check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        return done.stdout.splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)  # Fast shutdown: it ends its children.
        self.process.communicate(timeout=TIMEOUT_S)
        shutil.rmtree(self.folder)


def beside_postgres(bench, script, queries, arguments=()):
    """The script's output, and what the queries gave, which came when it had begun."""
    with Postgres.ONE_AT_A_TIME, Postgres() as server:
        process = bench.start(bench.command(script, (), arguments), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        answers = []
        first = process.stdout.readline()
        if first:
            answers = [server.ask(*it) for it in queries]
            process.send_signal(signal.SIGINT)
        output, _ = bench.finish(process)
        return first + output, answers


def postgres_slow_queries(bench):
    pid = "select pg_backend_pid()"
    output, answers = beside_postgres(
        bench, "postgres_slow_queries",
        [(pid, "select pg_sleep(0.25), 'one'"), (pid, "select 'two'"),
         (pid, "select pg_sleep(0.25), 'three'")], ["200"])
    slow = [answers[0][0], answers[2][0]]
    for backend, word in zip(slow, ("one", "three")):
        found = row(output, rf"^ *{backend} +(\d+)\.\d+ +(\d+)\.\d+  select pg_sleep.*'{word}'$")
        expect(int(found[1]) >= 250 and int(found[2]) >= 250, "a quarter of a second", output)
    lines_are(output, "'two'", 0)


def postgres_phases(bench):
    output, _ = beside_postgres(
        bench, "postgres_phases",
        [["select count(*) from pg_class"] * 10, ["begin", "create table t()", "rollback"]])
    for phase in ("parse", "rewrite", "plan", "execute"):
        found = row(output, rf"^query-{phase} +(\d+) +(\d+) +(\d+)$")
        expect(int(found[1]) >= 10, "10 queries", output)
    expect(number(output, r"^committed: (\d+)$") >= 10, "10 transactions", output)
    expect(number(output, r"^rolled back: (\d+)$") >= 1, "one rolled back", output)


def lock_waits(bench):
    output, _ = bench.around_victim("lock_waits", "locks", 15)
    found = [it for it in re.findall(r"^mutex +0x\w+ +(\d+) +(\d+) +(\d+)$", output, re.MULTILINE)
             if it[1] != "0"]
    expect(len(found) == 1 and found[0][:2] == ("30", "15"), "30 times taken, 15 waits", output)


CASES = (calls, flow, function_latency, cxx_exceptions, postgres_slow_queries, postgres_phases,
         lock_waits, redis_commands, python_calls, python_imports, python_gc, sqlite_statements)
