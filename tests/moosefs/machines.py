# SPDX-License-Identifier: Apache-2.0
"""Machines of a test bed: name spaces for the network and for the host's name, on one switch."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "hops"))
import network  # noqa: E402

CLONE_NEWNS, CLONE_NEWUTS = 0x00020000, 0x04000000
MS_PRIVATE_FOR_ALL = (1 << 18) | (1 << 14)
BITS = 24
OWN_ADDRESS = f"10.78.0.254/{BITS}"


def enter_own_mounts():
    """What this process and its children mount from here on is seen by nobody else."""
    network.call("unshare", CLONE_NEWNS)
    network.call("mount", b"none", b"/", None, MS_PRIVATE_FOR_ALL, None)


def enter_own_network():
    """Of this process and its machines: a switch, on which it has OWN_ADDRESS."""
    network.enter_own()
    _ip("link", "add", "switch", "type", "bridge")
    _ip("address", "add", OWN_ADDRESS, "dev", "switch")
    _ip("link", "set", "switch", "up")


class Machine:
    """A process that holds the name spaces. They last as long as it, and whoever enters them."""

    def __init__(self, name, address):
        self.name = name
        self.address = address
        ready, says_ready = os.pipe()
        go, says_go = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _hold(name, parent, says_ready, go)
        os.close(go)
        os.close(says_ready)
        if os.read(ready, 1) != b"y":
            raise OSError(f"the machine {name} could not be made")
        os.close(ready)
        port = f"to-{name}"
        _ip("link", "add", "name", port, "type", "veth", "peer", "name", "eth0", "netns",
            str(self.pid))
        _ip("link", "set", port, "master", "switch", "up")
        self._inside("ip", "link", "set", "lo", "up")
        self._inside("ip", "address", "add", f"{address}/{BITS}", "dev", "eth0")
        self._inside("ip", "link", "set", "eth0", "up")
        os.close(says_go)

    def enter(self):
        """For a child before it becomes a program of this machine."""
        for kind, flag in (("net", network.CLONE_NEWNET), ("uts", CLONE_NEWUTS)):
            with open(f"/proc/{self.pid}/ns/{kind}", "rb") as space:
                network.call("setns", space.fileno(), flag)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _inside(self, *command):
        subprocess.run(command, preexec_fn=self.enter, check=True)


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def _hold(name, parent, says_ready, go):
    try:
        network.end_with_parent()
        if os.getppid() == parent:
            network.call("unshare", network.CLONE_NEWNET | CLONE_NEWUTS)
            socket.sethostname(name)
            os.write(says_ready, b"y")
            os.read(go, 1)
            while True:
                time.sleep(3600)
    finally:
        os._exit(1)
