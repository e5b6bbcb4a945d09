# SPDX-License-Identifier: Apache-2.0
"""What the pages of docs/cases need to be shown: a PostgreSQL of one's own, its clients, Clew."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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
