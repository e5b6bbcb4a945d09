# SPDX-License-Identifier: Apache-2.0
"""What the pages of docs/cases need to be shown: a PostgreSQL of one's own with its clients,
HAProxy in front of nginx, Clew."""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

PATIENCE_S = 60
SKIPPED = 77  # As ctest is told.


class Missing(Exception):
    """What a case needs and this machine has not."""


def program(name):
    folders = [os.environ.get("PATH", "")]
    folders += map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))
    found = shutil.which(name, path=":".join(folders))
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain: {what}")
        time.sleep(0.01)


class PostgreSql:
    """Runs as somebody who is not root, behind a UNIX socket, until it is left."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="clew-case-"))
        self.folder.chmod(0o777)
        self._clients = []
        data = self.folder / "data"
        subprocess.run([program("initdb"), "-D", data, "-U", "tester", "-A", "trust", "--no-sync",
                        "--locale=C", "-E", "UTF8"], cwd=self.folder, preexec_fn=self._be_nobody,
                       stdout=subprocess.DEVNULL, check=True)
        self._server = subprocess.Popen(
            [program("postgres"), "-D", data, "-c", "listen_addresses=", "-c", "fsync=off",
             "-c", f"unix_socket_directories={self.folder}"], cwd=self.folder,
            preexec_fn=self._be_nobody, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        until(lambda: self._psql("select 1").returncode == 0, "PostgreSQL listens")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self._clients:
            client.kill()
            client.wait()
        self._server.send_signal(signal.SIGINT)
        self._server.wait()
        shutil.rmtree(self.folder)

    @property
    def backends(self):
        """Pids of the server and of all its children."""
        pid = self._server.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def ask(self, statement):
        return self._psql(statement).stdout.strip()

    def client(self, *command, script=None):
        """A program that runs until the end, with what it shall read."""
        words = [program(command[0]), "-h", self.folder, "-U", "tester", *command[1:], "postgres"]
        client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self._clients.append(client)
        if script is not None:
            client.stdin.write(script.encode())
            client.stdin.flush()
        return client

    def _psql(self, statement):
        return subprocess.run([program("psql"), "-h", self.folder, "-U", "tester", "-Atqc",
                               statement, "postgres"], capture_output=True, text=True, check=False)

    @staticmethod
    def _be_nobody():
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)


class Fronts:
    """HAProxy, and behind it one worker of nginx that compresses JSON; with clients that ask again
    and again, until it is left."""

    def __init__(self, files):
        """files: name -> text."""
        self.folder = Path(tempfile.mkdtemp(prefix="clew-case-"))
        self.folder.chmod(0o755)
        for name, text in files.items():
            (self.folder / name).write_text(text)
        behind, self._port = free_port(), free_port()
        places = "".join(f"{word}_temp_path {self.folder}/{word};\n" for word in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        nginx = self._write("nginx.conf", f"""daemon off; worker_processes 1; error_log /dev/null;
            pid {self.folder}/nginx.pid; events {{}}
            http {{ {places} access_log off; gzip on; gzip_comp_level 9; gzip_proxied any;
                    gzip_types application/json; types {{ application/json json; }}
                    server {{ listen 127.0.0.1:{behind}; root {self.folder}; }} }}""")
        haproxy = self._write("haproxy.cfg", f"""defaults
              mode http
              timeout connect 5s
              timeout client 60s
              timeout server 60s
            frontend front
              bind 127.0.0.1:{self._port}
              default_backend web
            backend web
              server nginx 127.0.0.1:{behind}\n""")
        # The folders of Debian that a user's PATH may lack.
        self._servers = [self._start([self._program("nginx"), "-e", "/dev/null", "-c", nginx]),
                         self._start([self._program("haproxy"), "-db", "-f", haproxy])]
        self._is_over = False
        self._clients = []
        try:
            until(lambda: self.ask(next(iter(files))) is not None, "nginx and HAProxy serve")
        except RuntimeError:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._is_over = True
        for client in self._clients:
            client.join()
        for server in self._servers:
            server.terminate()
            server.wait()
        shutil.rmtree(self.folder)

    @property
    def worker(self):
        """The pid of nginx' worker."""
        pid = self._servers[0].pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def ask(self, name):
        """How long the answer took; None: there was none."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/{name}",
                                         headers={"Accept-Encoding": "gzip"})
        begin = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                answer.read()
        except OSError:
            return None
        return time.monotonic() - begin

    def client(self, name, pause_s):
        """One that asks again and again; the list of how long each answer took."""
        took = []

        def run():
            while not self._is_over:
                took.append(self.ask(name) or 0)
                time.sleep(pause_s)

        self._clients.append(threading.Thread(target=run))
        self._clients[-1].start()
        return took

    def _write(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    @staticmethod
    def _program(name):
        return program(name) if shutil.which(name) else program(f"/usr/sbin/{name}")

    @staticmethod
    def _start(command):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def rows(clew, query, *options):
    """What a query answers, as dictionaries. Fails where anything was lost."""
    done = subprocess.run([clew, "run", query, "--json", *map(str, options)], capture_output=True,
                          text=True, timeout=2 * PATIENCE_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{query}\n{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    summary = next(line["summary"] for line in lines if "summary" in line)
    assert not summary["lost"] and not summary["dropped"], summary
    return [line for line in lines if "summary" not in line]


def main(cases):
    if os.geteuid() != 0:
        print("SKIPPED: programs in the kernel need root")
        return SKIPPED
    try:
        cases[sys.argv[2]](sys.argv[1])
    except Missing as missing:
        print(f"SKIPPED: {missing}")
        return SKIPPED
    return 0
