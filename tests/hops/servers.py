# SPDX-License-Identifier: Apache-2.0
"""The test bed: HAProxy -> nginx -> memcached, and nginx -> an application -> redis and PostgreSQL.
All are Debian's own programs, unmodified, but for the application (app.cc)."""

import glob
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import network
from fronts import FRONTS, ORIGIN, Place
from guardian import Guardian

PATIENCE_S = 30
LOG_SHOWN = 2000
LIMP_DELAY_S = 0.020
CAN_LIMP = ("memcached", "redis", "postgresql")
# The application's variants, and where nginx sends which paths: /t/ID to hops_threads.
APPLICATIONS = {"threads": "t", "pool": "w", "says": "s"}
MEMCACHED_PATH = "m"
DELAYED_PATH = "d"  # To hops_threads, by a timer of nginx.
ASKING_PATH = "a"  # To hops_threads, which has to allow it before.
REDIS_PATH = "r"  # Of applications that the load goes to: they ask redis alone.
SERVERS = ("haproxy", "nginx", "memcached", "redis", "postgresql", *APPLICATIONS, *FRONTS,
           ORIGIN)
FIRST_PORT = 9001  # In a namespace of its own, and below what connections take for themselves.
POSTGRESQL_USER = b"user\0tester\0database\0postgres\0\0"

HAPROXY = """\
global
    nbthread 4
    maxconn 500
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend front
    bind 127.0.0.1:{haproxy}
    default_backend back
backend back
    server nginx {haproxys_nginx}
"""

NGINX = """\
{user}daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    limit_req_zone $server_addr zone=delayed:64k rate=200r/s;
    upstream memcached {{ server {memcached}; keepalive 16; }}
    upstream threads {{ server {threads}; keepalive 16; }}
    upstream pool {{ server {pool}; keepalive 16; }}
    upstream says {{ server {says}; keepalive 16; }}
    server {{
        listen {nginx};
        location /m/ {{ set $memcached_key $uri; memcached_pass memcached; }}
        location /d/ {{ limit_req zone=delayed burst=500; proxy_pass http://threads; }}
        location ~ ^/a/(?<id>.+)$ {{ auth_request /allow; proxy_pass http://threads/p/$id; }}
        location = /allow {{ internal; proxy_pass http://threads/r/$id; }}
        location /t/ {{ proxy_pass http://threads; }}
        location /w/ {{ proxy_pass http://pool; }}
        location /s/ {{ proxy_pass http://says; }}
    }}
}}
"""


class Missing(Exception):
    """A server that is not installed."""


def program(name):
    folders = [os.environ.get("PATH", ""), "/usr/sbin"]
    folders += sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    found = shutil.which(name, path=":".join(folders))
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def listens(address):
    try:
        with network.connect(address, PATIENCE_S):
            return True
    except (ConnectionError, FileNotFoundError):
        return False


def takes_statements(address):
    """PostgreSQL listens before it does, and then answers with an error instead of a request (R)
    for nothing or for a password."""
    message = struct.pack(">II", 8 + len(POSTGRESQL_USER), 3 << 16) + POSTGRESQL_USER
    try:
        with network.connect(address, PATIENCE_S) as connection:
            connection.sendall(message)
            return connection.recv(1) == b"R"
    except (ConnectionError, FileNotFoundError):
        return False


def is_backend(pid):
    """Whether a process of PostgreSQL speaks to a client, as its title says."""
    try:
        return b" tester " in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


class Bed:
    """All servers run when it is made, but for FRONTS, which need() starts. `programs` is the
    folder of the built applications. `limp` names a server that answers over a slow wire.
    `by_unix`: those behind HAProxy have UNIX sockets."""

    def __init__(self, programs, limp=None, by_unix=False):
        self._programs = {name: program(name) for name in (
            "haproxy", "nginx", "memcached", "redis-server", "initdb", "postgres")}
        self._is_root = os.geteuid() == 0
        self._built = programs.resolve()
        if limp and not self._is_root:
            raise Missing("a limping hop needs namespaces, hence root")
        if self._is_root:
            network.enter_own()
        self.folder = Path(tempfile.mkdtemp(prefix="clew-hops-"))
        self.folder.chmod(0o777)  # PostgreSQL runs as somebody else.
        self._wire = network.Wire(LIMP_DELAY_S) if limp else None  # Knows nothing of the guardian.
        self.guardian = Guardian(self.folder)
        self._limp = limp
        self._by_unix = by_unix
        self._processes = {}
        ports = range(FIRST_PORT, 2 * FIRST_PORT)
        if not self._is_root:
            ports = network.free_ports(len(SERVERS))
        self._ports = dict(zip(SERVERS, ports))
        try:
            self._start_all(programs.resolve())
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure not in (None, KeyboardInterrupt):
            print(self._logs(), file=sys.stderr)
        self.end()

    def end(self):
        self.guardian.end()
        for process in self._processes.values():
            process.wait()
        if self._wire:
            os.kill(self._wire.pid, signal.SIGKILL)
            os.waitpid(self._wire.pid, 0)

    def address(self, name):
        """(host, port), or the path of a UNIX socket."""
        if self._by_unix and name != "haproxy":
            file = f".s.PGSQL.{self._ports[name]}" if name == "postgresql" else f"{name}.sock"
            return str(self.folder / file)
        host = network.FAR_HOST if name == self._limp else "127.0.0.1"
        return host, self._ports[name]

    def pids(self, name):
        """Of a server's processes that work for requests, and of the one that begins them."""
        pid = self._processes[name].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if name == "postgresql":
            children = [child for child in children if is_backend(child)]
        return [pid, *map(int, children)]

    def need(self, names):
        """Those of FRONTS run from here on."""
        place = Place(folder=self.folder, ports=self._ports, program=program, built=self._built,
                      somebody=self._somebody(), is_root=self._is_root,
                      redis="{}:{}".format(*self.address("redis")),
                      postgresql="{}:{}".format(*self.address("postgresql")))
        for name in names:
            if name in FRONTS and name not in self._processes:
                self._start(name, FRONTS[name](place, name))
                self._wait_for(name)

    # --- the servers -----------------------------------------------------------------------------

    def _start_all(self, programs):
        self._start_memcached()
        self._start_redis()
        self._start_postgresql()
        for name in ("memcached", "redis", "postgresql"):
            self._wait_for(name)
        behind = [self._as_argument(name) for name in ("redis", "postgresql")]
        for name in APPLICATIONS:
            own = self.address(name) if self._by_unix else str(self._ports[name])
            self._start(name, [programs / f"hops_{name}", own, *behind])
            self._wait_for(name)
        self._start_nginx()
        self._wait_for("nginx")
        self._start_haproxy()
        self._wait_for("haproxy")

    def _as_argument(self, name, prefix=""):
        address = self.address(name)
        return f"{prefix}{address}" if self._by_unix else "{}:{}".format(*address)

    def _start_memcached(self):
        address = self.address("memcached")
        where = (["-s", address, "-a", "777"] if self._by_unix else
                 ["-U", "0", "-l", address[0], "-p", str(address[1])])
        self._start("memcached", [self._programs["memcached"], "-u", self._somebody(), *where,
                                  "-t", "4", "-m", "64"])

    def _start_redis(self):
        address = self.address("redis")
        where = (["--port", "0", "--unixsocket", address] if self._by_unix else
                 ["--port", str(address[1]), "--bind", address[0]])
        self._start("redis", [self._programs["redis-server"], *where, "--save", "",
                              "--protected-mode", "no", "--dir", str(self.folder)])

    def _start_postgresql(self):
        data = str(self.folder / "data")
        user = self._somebody() if self._is_root else None
        subprocess.run([self._programs["initdb"], "-D", data, "-U", "tester", "-A", "trust",
                        "--no-sync", "--locale=C", "-E", "UTF8"], cwd=self.folder, user=user,
                       stdout=subprocess.DEVNULL, check=True)
        host = "" if self._by_unix else self.address("postgresql")[0]
        if self._limp == "postgresql":
            with open(f"{data}/pg_hba.conf", "a") as rules:
                rules.write(f"host all all {network.NEAR_HOST}/32 trust\n")
        settings = [f"listen_addresses={host}", "fsync=off", "shared_buffers=16MB",
                    "max_connections=200", f"unix_socket_directories={self.folder}"]
        options = [word for setting in settings for word in ("-c", setting)]
        self._start("postgresql", [self._programs["postgres"], "-D", data, "-p",
                                   str(self._ports["postgresql"]), *options],
                    user=user, ends_by=signal.SIGINT)

    def _start_nginx(self):
        values = {name: self._as_argument(name, "unix:")
                  for name in ("memcached", "nginx", *APPLICATIONS)}
        values.update(folder=self.folder, user="user root;\n" * self._is_root)
        configuration = self.folder / "nginx.conf"
        configuration.write_text(NGINX.format(**values))
        self._start("nginx", [self._programs["nginx"], "-c", str(configuration), "-p",
                              str(self.folder), "-e", "stderr"])

    def _start_haproxy(self):
        configuration = self.folder / "haproxy.cfg"
        configuration.write_text(HAPROXY.format(haproxy=self._ports["haproxy"],
                                                haproxys_nginx=self._as_argument("nginx", "unix@")))
        self._start("haproxy", [self._programs["haproxy"], "-q", "-db", "-f", str(configuration)])

    def _log_of(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")[-LOG_SHOWN:]

    def _logs(self):
        return "\n".join(f"{name} (status {process.poll()}): {self._log_of(name)}"
                         for name, process in self._processes.items())

    # --- processes -------------------------------------------------------------------------------

    @staticmethod
    def _somebody():
        return "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

    def _start(self, name, command, user=None, ends_by=signal.SIGTERM):
        def become_server():
            if name == self._limp:
                self._wire.enter_far_end()
            if user:
                somebody = pwd.getpwnam(user)
                os.setgroups([])
                os.setgid(somebody.pw_gid)
                os.setuid(somebody.pw_uid)

        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, preexec_fn=become_server,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes[name] = process
        self.guardian.watch(process.pid, ends_by)

    def _wait_for(self, name):
        deadline = time.monotonic() + PATIENCE_S
        is_ready = takes_statements if name == "postgresql" else listens
        while not is_ready(self.address(name)):
            if self._processes[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not listen:\n{self._log_of(name)}")
            time.sleep(0.01)
