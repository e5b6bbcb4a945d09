# SPDX-License-Identifier: Apache-2.0
"""A distributed file system, MooseFS as Debian has it: a master, three servers of chunks and two
machines that mount it, with two copies of each file. Nothing of it is seen outside, and nothing is
left behind it."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machines
from guardian import Guardian

PATIENCE_S = 30
MASTER = ("master", "10.78.0.1")
STORES = {"store-a": "10.78.0.11", "store-b": "10.78.0.12", "store-c": "10.78.0.13"}
CLIENTS = {"web": "10.78.0.21", "batch": "10.78.0.22"}
PACKAGES = {"mfsmaster": "moosefs-master", "mfschunkserver": "moosefs-chunkserver",
            "mfsmount": "moosefs-client", "mfssetgoal": "moosefs-client",
            "mfsfileinfo": "moosefs-client", "ip": "iproute2", "cc": "gcc"}
CLIENTS_PORT = 9421
COPIES = 2
FILES, FILE_BYTES = 24, 1 << 20
QUESTIONS = 40  # Many times as many as a mount has threads.
# Who reads, on which machine, with which seed.
READERS = {"shop": ("web", 1), "search": ("web", 2), "report": ("batch", 3)}

# To the master store-a is near to everybody, and store-c far from everybody: a distance is one more
# than the number of steps to where two paths part.
SKEWED = f"""\
{CLIENTS["web"]} floor|row|rack
{CLIENTS["batch"]} floor|row|rack
{STORES["store-a"]} floor|row|rack
{STORES["store-b"]} floor|row|other
{STORES["store-c"]} floor|far|other
"""

COMMON = "DATA_PATH = {data}\nWORKING_USER = root\nWORKING_GROUP = root\nNICE_LEVEL = 0\n" \
         "DISABLE_OOM_KILLER = 0\n"
MASTER_SETTINGS = COMMON + ("EXPORTS_FILENAME = {data}/exports\n"
                            "TOPOLOGY_FILENAME = {data}/topology\n")
STORE_SETTINGS = COMMON + ("HDD_CONF_FILENAME = {data}/disks\nMASTER_HOST = {master}\n"
                           "MASTER_RECONNECTION_DELAY = 1\nHDD_LEAVE_SPACE_DEFAULT = 1MiB\n")


class Missing(Exception):
    """A package that is not installed, or something that the machine does not have."""


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise Missing(f"the package {PACKAGES[name]} is not installed")
    return found


class Bed:
    """All run, and files are there, when it is made. `skewed`: the master has a wrong topology."""

    def __init__(self, skewed):
        self._programs = {name: program(name) for name in PACKAGES}
        if os.geteuid() != 0:
            raise Missing("name spaces and a mount need root")
        if not Path("/dev/fuse").exists():
            raise Missing("there is no /dev/fuse")
        machines.enter_own_network()  # Machines end with this process, and know no guardian.
        self._machines = {name: machines.Machine(name, address) for name, address in
                          (MASTER, *STORES.items(), *CLIENTS.items())}
        self.folder = Path(tempfile.mkdtemp(prefix="clew-moosefs-"))
        self.guardian = Guardian(self.folder)
        self._processes = {}
        try:
            machines.enter_own_mounts()  # Which the guardian does not see: it removes the folder.
            self._start_servers(skewed)
            self._mount_all()
            self._write_files()
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
        for machine in self._machines.values():
            machine.end()

    def pid(self, name):
        """Of the program of a machine, or of a reader."""
        return self._processes[name].pid

    def places(self):
        """Machines by what runs there: readers, and servers that are called as their machines."""
        return {**{name: name for name in (MASTER[0], *STORES, *CLIENTS)},
                **{name: machine for name, (machine, _) in READERS.items()}}

    def folder_on(self, client):
        return self.folder / client / "files"

    def copies(self):
        """Names of the stores that have a file, by file, as the master says it."""
        stores = {address: name for name, address in STORES.items()}
        said = self._run("web", "mfsfileinfo", *self._files_on("web"))
        found = {}
        for line in said.splitlines():
            if line.startswith("/"):
                found[name := Path(line.rstrip(":")).name] = []
            elif place := re.search(r"copy \d+: ([\d.]+):", line):
                found[name].append(stores[place[1]])
        return found

    def start_readers(self, operations=0):
        """They begin with go(); without a number they read until they are told to end."""
        self._are_told_to_end = operations == 0
        for name, (client, seed) in READERS.items():
            command = [self.folder / name, str(seed), str(operations), *self._files_on(client)]
            self._start(name, command, client, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wake_mounts(self):
        """Each of their threads waits for a question: after these it waits for one anew."""
        for client in CLIENTS:
            for _ in range(QUESTIONS):
                os.stat(self._files_on(client)[0])

    def go(self):
        for name in READERS:
            self._processes[name].stdin.write(b"\n")
            self._processes[name].stdin.flush()

    def finish_readers(self):
        """(reader, file): how often it was read"""
        read = {}
        for name in READERS:
            if not self._are_told_to_end:
                self._processes[name].wait(timeout=PATIENCE_S)
            output = self._processes[name].communicate(timeout=PATIENCE_S)[0].decode()
            if self._processes[name].returncode != 0:
                raise RuntimeError(f"{name} has failed: {self._log_of(name)}")
            for line in output.splitlines():
                file, count = line.split()
                read[name, Path(file).name] = int(count)
        return read

    # --- the system ------------------------------------------------------------------------------

    def _start_servers(self, skewed):
        data = self._new_folder(MASTER[0])
        shutil.copy("/var/lib/mfs/metadata.mfs.empty", data / "metadata.mfs")
        (data / "exports").write_text("* / rw,alldirs,maproot=0\n")
        (data / "topology").write_text(SKEWED if skewed else "")
        (data / "settings").write_text(MASTER_SETTINGS.format(data=data))
        self._start(MASTER[0], [self._programs["mfsmaster"], "-f", "-c", data / "settings",
                                "start"])
        self._wait_for(MASTER[0], self._master_listens)
        for name in STORES:
            data = self._new_folder(name)
            (data / "disk").mkdir()
            (data / "disks").write_text(f"{data}/disk\n")
            (data / "settings").write_text(STORE_SETTINGS.format(data=data, master=MASTER[1]))
            self._start(name, [self._programs["mfschunkserver"], "-f", "-c", data / "settings",
                               "start"])

    def _mount_all(self):
        for name in CLIENTS:
            place = self._new_folder(name) / "files"
            place.mkdir()
            self._start(name, [self._programs["mfsmount"], "-f", "-H", MASTER[1], "-o",
                               "mfscachemode=DIRECT,mfsnice=0,mfsallowoomkiller", place])
        for name in CLIENTS:
            self._wait_for(name, lambda name=name: os.path.ismount(self.folder_on(name)))

    def _write_files(self):
        self._wait_for("store-a", self._has_all_stores)
        for file in self._files_on("web"):
            Path(file).write_bytes(os.urandom(FILE_BYTES))
        self._build_readers()

    @staticmethod
    def _master_listens():
        try:
            with socket.create_connection((MASTER[1], CLIENTS_PORT), PATIENCE_S):
                return True
        except ConnectionError:
            return False

    def _has_all_stores(self):
        """A file was written to as many stores as there are."""
        trial = self.folder_on("web") / "trial"
        self._run("web", "mfssetgoal", str(len(STORES)), self.folder_on("web"))
        trial.write_bytes(b"x")
        said = self._run("web", "mfsfileinfo", trial)
        trial.unlink()
        self._run("web", "mfssetgoal", str(COPIES), self.folder_on("web"))
        return said.count("copy ") == len(STORES)

    def _build_readers(self):
        source = Path(__file__).resolve().parent / "reader.c"
        first, *others = (self.folder / name for name in READERS)
        subprocess.run([self._programs["cc"], "-O2", "-g", source, "-o", first], check=True)
        for path in others:
            shutil.copy(first, path)

    def _files_on(self, client):
        return [str(self.folder_on(client) / f"file{i:02}") for i in range(FILES)]

    def _new_folder(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def _log_of(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def _logs(self):
        return "\n".join(f"{name} (status {process.poll()}): {self._log_of(name)}"
                         for name, process in self._processes.items())

    # --- processes -------------------------------------------------------------------------------

    def _run(self, machine, name, *arguments):
        done = subprocess.run([self._programs[name], *arguments], stdout=subprocess.PIPE, text=True,
                              preexec_fn=self._machines[machine].enter, check=True)
        return done.stdout

    def _start(self, name, command, machine=None, **streams):
        with open(self.folder / f"{name}.log", "wb") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **streams}
            process = subprocess.Popen(command, preexec_fn=self._machines[machine or name].enter,
                                       start_new_session=True, **streams)  # Ctrl-C is the bed's.
        self._processes[name] = process
        self.guardian.watch(process.pid, signal.SIGKILL)  # What they keep goes with the folder.

    def _wait_for(self, name, is_ready):
        deadline = time.monotonic() + PATIENCE_S
        while not is_ready():
            if self._processes[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not ready:\n{self._log_of(name)}")
            time.sleep(0.05)
