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

INSTALL_SECONDS = 1.0
ROWS_A_SECOND = 100_000
BEAT_NODES = 10_000
BEAT_CONNECTIONS = 100
BEAT_SECONDS = 10


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
    return rows + beat_rows(build)


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


def beat_rows(build):
    """Nodes that run nothing, over a real server: what both ends cost, and what is lost."""
    server = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if server is None:
        progress("cluster: nats-server is not installed")
        return []
    progress(f"cluster: beats of {BEAT_NODES:,} nodes over {BEAT_CONNECTIONS} connections")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        begun = [subprocess.Popen(command, stderr=subprocess.DEVNULL)]
        try:
            return measure_beats(build, f"nats://127.0.0.1:{port}", begun)
        finally:
            for process in reversed(begun):
                process.terminate()
                process.wait()


def measure_beats(build, url, begun):
    wait_for_port(url)
    begun.append(subprocess.Popen([str(build / "src/cmd/clew"), "root", "--cluster", url, "-q"]))
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
