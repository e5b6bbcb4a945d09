# SPDX-License-Identifier: Apache-2.0
"""Pivot Tracing's table 5: what joins by cause add to a request of redis and of nginx, by the CPU
time that the server spends on one. Contexts are begun and nothing is packed; one tuple is packed;
and as much as a context of the plan in place has room for. The plan of events stands beside it.

How often a server sleeps between two requests depends on what else the machine does, and changes
what one costs by more than is looked for. So what is added is measured where requests come many at
a time, in pipelines, and set against what one costs that comes as usual."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from socket import create_connection, socket

from causes import Vocabulary
from table import Row, Sample, interleave
from tracing import Clew, Redis

PLANS = {"in place": ["--plan", "in-place"], "from events": ["--plan", "emit"]}
ARGUMENTS = 6  # Of each call, that are packed where much is.
PIPELINE = 64  # Requests at a time.


def cpu_ns(pid):
    """What all threads of the process have spent so far, by the scheduler (/proc/PID/schedstat)."""
    return sum(int((task / "schedstat").read_text().split()[0])
               for task in Path(f"/proc/{pid}/task").iterdir())


class RedisServer:
    """GETs of redis-benchmark, of 50 connections."""

    name, module = "redis GET", "redis-server"
    begins, ends = "processCommand", "resetClient"
    never = ("flushAppendOnlyFile", "flushSlavesOutputBuffers")  # Not for a GET.
    packed = ("processCommand", "ACLCheckAllPerm", "call", "getCommand", "lookupKeyReadOrReply",
              "lookupKey", "expireIfNeeded")
    joined = "addReplyBulk"

    def __init__(self):
        self.redis = Redis()
        self.pid = self.redis.pid
        self.redis.throughput("set", 1000)  # The key that is asked for.

    def load(self, requests):
        return self.redis.throughput("get", requests, pipeline=1)

    def burst(self, requests):
        self.redis.throughput("get", requests, pipeline=PIPELINE)

    def close(self):
        self.redis.__exit__()


CONFIGURATION = """daemon off; master_process off; pid FOLDER/pid; error_log stderr crit;
events { worker_connections 256; }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/fastcgi; uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  server { listen 127.0.0.1:PORT; root FOLDER/files; } }
"""


class NginxServer:
    """A file of 1 kB, by ab, on 8 connections that stay."""

    name, module = "nginx, a file", "nginx"
    begins, ends = "ngx_http_process_request", "ngx_http_free_request"
    never = ("ngx_http_v2_init", "ngx_http_upstream_create")
    packed = ("ngx_http_process_request", "ngx_http_handler", "ngx_http_core_run_phases",
              "ngx_http_core_find_config_phase", "ngx_http_core_content_phase",
              "ngx_http_map_uri_to_path", "ngx_http_send_header")
    joined = "ngx_http_output_filter"

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="clew-bench-")
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        os.chmod(self.folder.name, 0o755)
        files = Path(self.folder.name) / "files"
        files.mkdir()
        (files / "index.html").write_text("x" * 1024)
        configuration = Path(self.folder.name) / "nginx.conf"
        configuration.write_text(CONFIGURATION.replace("FOLDER", self.folder.name)
                                 .replace("PORT", str(self.port)))
        self.process = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c",
                                         str(configuration)])
        self.pid = self.process.pid
        deadline = time.monotonic() + 30
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError("nginx does not answer")
        if os.cpu_count() > 1:  # The load and the server, each on its own CPU.
            os.sched_setaffinity(self.pid, {0})

    def _answers(self):
        try:
            create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def load(self, requests):
        command = ["ab", "-q", "-k", "-c", "8", "-n", str(requests),
                   f"http://127.0.0.1:{self.port}/index.html"]
        if os.cpu_count() > 1:
            command = ["taskset", "-c", "1", *command]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return float(next(line.split()[3] for line in lines.splitlines()
                          if line.startswith("Requests per second")))

    def burst(self, requests):
        request = b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(request)
            answer = len(connection.recv(1 << 20))
            for _ in range(requests // PIPELINE):
                connection.sendall(request * PIPELINE)
                left = answer * PIPELINE
                while left > 0:
                    left -= len(connection.recv(left))

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def entry(server, function):
    return f'entry("{server.module}!{function}")'


def vocabulary(server):
    """Where a request begins and ends; the vocabularies that come with Clew are left out, so that
    both plans follow the same."""
    return "".join(f'[[tracepoint]]\nname = "table5.{cause}"\n'
                   f'function = "{server.module}!{function}"\ncause = "{cause}"\n'
                   for function, cause in ((server.begins, "begin"), (server.ends, "end")))


def join(server, at, function):
    return f"join p{at} in First({entry(server, function)}) on p{at} -> u "


def cases(server):
    """What is packed, the limit in per cent, and the query. Its events are counted."""
    last, first = server.never
    yield ("nothing is packed", 0.3,
           f"from u in {entry(server, last)} {join(server, 0, first)}"
           "select new { n = count(), sum = sum(p0.arg0) }")
    yield ("one tuple", 1, f"from u in {entry(server, server.joined)} "
           f"{join(server, 0, server.packed[0])}select new {{ n = count(), sum = sum(p0.arg0) }}")
    values = " + ".join(f"p{at}.arg{number}" for at in range(len(server.packed))
                        for number in range(ARGUMENTS))
    yield (f"{len(server.packed)} tuples of {ARGUMENTS} values", 5,
           f"from u in {entry(server, server.joined)} "
           + "".join(join(server, at, function) for at, function in enumerate(server.packed))
           + f"select new {{ n = count(), sum = sum({values}) }}")


class Run:
    """CPU time and throughput of each turn, by name."""

    def __init__(self, server, requests):
        self.server, self.requests = server, requests // PIPELINE * PIPELINE
        self.rates, self.usual, self.notes = {}, {}, {}

    def spent(self, name):
        """ns a request in pipelines. Beside it, the usual ones."""
        before = cpu_ns(self.server.pid)
        self.rates.setdefault(name, []).append(self.server.load(self.requests))
        usual = cpu_ns(self.server.pid)
        self.usual.setdefault(name, []).append((usual - before) / self.requests)
        self.server.burst(self.requests)
        return (cpu_ns(self.server.pid) - usual) / self.requests

    def traced(self, name, query, arguments, is_joined):
        with tempfile.TemporaryDirectory() as none, \
                Clew(self.server.pid, query, arguments, {"CLEW_VOCABULARY": none}) as session:
            spent = self.spent(name)
        begun = session.summary["by_cause"]["requests"]
        joined = session.rows[0]["n"] if session.rows else 0
        share = (joined if is_joined else begun) / (2 * self.requests)
        if "in-place" in arguments and share < 0.999:
            raise RuntimeError(f"{share:.3f} of the requests were followed: {session.summary}")
        self.notes[name] = "" if share >= 0.999 else f"; {100 * share:.0f} % of them were followed"
        return spent

    def slower(self, name):
        """How the throughput changes, in per cent: the smallest and the largest of the turns."""
        ratios = [100 * (mine / plain - 1)
                  for mine, plain in zip(self.rates[name], self.rates["untraced"])]
        return min(ratios), max(ratios)


def server_rows(kind, repetitions, requests):
    server = kind()
    rows = []
    try:
        with Vocabulary(vocabulary(server)) as words:
            run = Run(server, requests)
            run.spent("warm")
            wanted = {}
            for what, limit, query in cases(server):
                for plan, arguments in PLANS.items():
                    wanted[f"{server.name}, {what}, {plan}"] = (
                        limit if plan == "in place" else None, query,
                        [*arguments, *words.files()], what != "nothing is packed")
            measures = {"untraced": lambda: run.spent("untraced")}
            for name, (_, query, arguments, is_joined) in wanted.items():
                measures[name] = (lambda name=name, query=query, arguments=arguments,
                                  is_joined=is_joined: run.traced(name, query, arguments,
                                                                  is_joined))
            found = interleave(repetitions, measures, f"table 5, {server.name}")
            rows = [row_of(name, limit, found, run) for name, (limit, *_) in wanted.items()]
    finally:
        server.close()
    return rows


def row_of(name, limit, found, run):
    row = Row(name, f"<= {limit} %" if limit else "", "%", limit)
    base, mine = found["untraced"], found[name]
    for sample in (base, mine):
        if not isinstance(sample, Sample):
            return row.fail(sample)
    usual = statistics.median(run.usual["untraced"])
    added = mine.against(base, lambda traced, plain: traced - plain)
    least, most = run.slower(name)
    between_minima = min(mine.values) - min(base.values)
    return row.set(100 * added.median / usual, tuple(100 * each / usual for each in added.spread),
                   "", f"{added.median:,.0f} ns ({added.spread[0]:,.0f} to "
                   f"{added.spread[1]:,.0f}; of the minima {between_minima:,.0f}) of {usual:,.0f}; "
                   f"throughput {least:+.1f} to {most:+.1f} %{run.notes[name]}")


def table5_rows(repetitions, requests):
    rows = []
    for kind, program, count in ((RedisServer, "redis-benchmark", requests),
                                 (NginxServer, "ab", requests // 2)):
        if shutil.which(program):
            rows += server_rows(kind, 3 * repetitions, count)
        else:
            rows.append(Row(kind.name, "", "%", None).fail(f"{program} is not installed"))
    return rows
