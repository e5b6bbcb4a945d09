# SPDX-License-Identifier: Apache-2.0
"""What a cluster costs its root: queries on thousands of nodes, intervals of thousands of keys."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from table import Row, Sample, progress
from tracing import Program

INSTALL_SECONDS = 1.0
ROWS_A_SECOND = 100_000
BEAT_NODES = 10_000
BEAT_CONNECTIONS = 100
BEAT_SECONDS = 10
IDLE_SECONDS = 10
IDLE_CORE_PERCENT = 1
IDLE_MIB = 32
INTERVALS = 12
ROW_SECONDS = 1.0


def cluster_rows(build):
    progress("cluster: 10 to 10,000 nodes without processes")
    run = subprocess.run([str(build / "bench/cluster_bench")], capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or "cluster_bench failed")
    rows = []
    for line in run.stdout.splitlines():
        found = json.loads(line)
        rows += install_rows(found) if found["what"] == "install" else [merge_row(found)]
    what = f"beats of {BEAT_NODES:,} nodes over {BEAT_CONNECTIONS} connections"
    return rows + with_server(what, beat_rows, build) + with_server("a real node", node_rows, build)


def install_rows(found):
    limit = INSTALL_SECONDS if found["nodes"] == 10_000 else None
    rows = []
    for what in ("armed", "ended"):
        seconds = Sample(found[what])
        row = Row(f"cluster: query {what} on {found['nodes']:,} nodes", "<= 1 s" if limit else "",
                  "s", limit)
        rows.append(row.set(seconds.median, seconds.spread,
                            note="1 % dead, 1 % slow by up to 0.5 s"))
    return rows


def merge_row(found):
    rates = Sample(found["rates"])
    row = Row(f"cluster: {found['nodes']:,} nodes of {found['keys']:,} keys, merged and "
              "told", f">= {ROWS_A_SECOND:,}", "rows/s", ROWS_A_SECOND,
              at_most=False)
    return row.set(rates.median, rates.spread)


def with_server(what, measure, build):
    """`measure(build, url, begun, folder)`: what it begins is ended behind it, with the server."""
    server = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if server is None:
        progress("cluster: nats-server is not installed")
        return []
    progress(f"cluster: {what}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        begun = [subprocess.Popen(command, stderr=subprocess.DEVNULL)]
        try:
            wait_for_port(f"nats://127.0.0.1:{port}")
            return measure(build, f"nats://127.0.0.1:{port}", begun, folder)
        finally:
            for process in reversed(begun):
                process.terminate()
                process.wait()


def begin_verb(build, begun, *words):
    begun.append(subprocess.Popen([str(build / "src/cmd/clew"), *words, "-q"]))
    return begun[-1]


def node_rows(build, url, begun, folder):
    """What a node takes that has nothing to do, and how long an interval's end takes to whoever
    asked: on this machine, with a root that has a store."""
    begin_verb(build, begun, "root", "--cluster", url, "--store", f"{folder}/root")
    node = begin_verb(build, begun, "node", "--cluster", url, "--name", "bench")
    delays = delays_of_rows(build, url)
    before, start = cpu_seconds(node.pid), time.monotonic()
    time.sleep(IDLE_SECONDS)
    share = 100 * (cpu_seconds(node.pid) - before) / (time.monotonic() - start)
    memory = resident_mib(node.pid)
    note = "behind a query"
    return [
        Row("cluster: end of an interval to its row", "<= 1 s", "s", ROW_SECONDS)
        .set(delays.median, delays.spread, note="every 1s, one node, root with a store"),
        Row("cluster: a node that runs nothing", "<= 1 %", "% of a core", IDLE_CORE_PERCENT)
        .set(share, note=note),
        Row("cluster: memory of a node that runs nothing", "<= 32 MiB", "MiB", IDLE_MIB)
        .set(memory, note=note),
    ]


def delays_of_rows(build, url):
    query = ('from e in cluster.Function("hot_loop!empty_frame") group by e.host '
             'select new { host = e.host, calls = count() } every 1s')
    with Program(build / "bench/hot_loop") as program:
        # Goes on for a few seconds more than is looked at.
        program.process.stdin.write(f"time empty_frame 1 1 4000 100 {1000 * INTERVALS // 3}\n")
        asked = subprocess.Popen([str(build / "src/cmd/clew"), "run", query, "--cluster", url,
                                  "--json", "--wait", "30s", "--for", f"{INTERVALS}s"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        delays = []
        for line in asked.stdout:
            row = json.loads(line)
            if "interval_begin" in row:
                delays.append((time.time_ns() - row["interval_begin"]) / 1e9 - 1)
        asked.wait()
    if len(delays) < 4:
        raise RuntimeError("a cluster gave too few intervals")
    # The first and the last one are no whole seconds.
    return Sample(delays[1:-1])


def beat_rows(build, url, begun, _folder):
    """Nodes that run nothing, over a real server: what both ends cost, and what is lost."""
    begin_verb(build, begun, "root", "--cluster", url)
    source = subprocess.Popen([str(build / "bench/cluster_beats"), url, str(BEAT_NODES),
                               str(BEAT_CONNECTIONS), str(BEAT_SECONDS)],
                              stdout=subprocess.PIPE, text=True)
    begun.append(source)
    if source.stdout.readline() != "begin\n":
        raise RuntimeError("cluster_beats failed")
    before = [cpu_seconds(process.pid) for process in begun[:2]]
    start = time.monotonic()
    source.stdout.readline()
    seconds = time.monotonic() - start
    used = [cpu_seconds(process.pid) - then for process, then in zip(begun, before)]
    found = json.loads(source.stdout.readline())
    note = f"{BEAT_NODES:,} beats a second, over {BEAT_CONNECTIONS} connections"
    rows = []
    for who, cpu in zip(("nats-server", "root"), used):
        row = Row(f"cluster: {who}, of {BEAT_NODES:,} nodes that run nothing", "", "% of a core",
                  None)
        rows.append(row.set(100 * cpu / seconds, note=note))
    lost = found["sent"] - found["answered"]
    rows.append(Row(f"cluster: beats without an answer, of {found['sent']:,}", "0", "beats", 0)
                .set(lost, note=note))
    return rows


def wait_for_port(url):
    host, port = url.removeprefix("nats://").split(":")
    for _ in range(1000):
        with socket.socket() as there:
            if there.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.01)
    raise RuntimeError("nats-server does not listen")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        found = next(line for line in file if line.startswith("VmRSS:"))
    return int(found.split()[1]) / 1024
