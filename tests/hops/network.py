# SPDX-License-Identifier: Apache-2.0
"""The network of a test bed: a namespace of its own for root, and a wire that delays what goes to
one server. Packets pass the wire as they are, so TCP knows nothing of it."""

import collections
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFDSTADDR = 0x8914, 0x8916, 0x8918
IFF_UP_AND_RUNNING = 0x41
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PR_SET_PDEATHSIG = 1

WIRE = "limp0"
NEAR_HOST, FAR_HOST = "10.77.0.1", "10.77.0.2"
PACKET_MAX = 65536

_libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _interface(control, request, name, value):
    fcntl.ioctl(control, request, struct.pack("16s24s", name.encode(), value))


def _raise_interface(control, name):
    _interface(control, SIOCSIFFLAGS, name, struct.pack("h", IFF_UP_AND_RUNNING))


def enter_own():
    """From here on this process and its children have a loopback interface of their own."""
    call("unshare", CLONE_NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _raise_interface(control, "lo")


def free_ports(count):
    """All at once, so that they differ."""
    with contextlib.ExitStack() as probes:
        ports = []
        for _ in range(count):
            probe = probes.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
        return ports


def connect(address, timeout_s):
    """Of (host, port), or of the path of a UNIX socket."""
    if isinstance(address, str):
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(timeout_s)
        made.connect(address)
        return made
    made = socket.create_connection(address, timeout=timeout_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def end_with_parent():
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_of_wire(here, there):
    """A point-to-point interface of this namespace, as a descriptor of its packets."""
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sh22x", WIRE.encode(), IFF_TUN | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, host in ((SIOCSIFADDR, here), (SIOCSIFDSTADDR, there)):
            address = struct.pack("=hH4s8x", socket.AF_INET, 0, socket.inet_aton(host))
            _interface(control, request, WIRE, address)
        _raise_interface(control, WIRE)
    return end


class Wire:
    """A namespace FAR_HOST that is reached over a wire of `delay_s`, one way."""

    def __init__(self, delay_s):
        ready, says_ready = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _run_wire(delay_s, says_ready, parent)
        os.close(says_ready)
        if os.read(ready, 1) != b"y":
            raise OSError("the wire could not be made: is there /dev/net/tun?")
        os.close(ready)

    def enter_far_end(self):
        """For a child before it becomes the server."""
        with open(f"/proc/{self.pid}/ns/net", "rb") as namespace:
            call("setns", namespace.fileno(), CLONE_NEWNET)


def _run_wire(delay_s, says_ready, parent):
    try:
        end_with_parent()
        if os.getppid() == parent:
            near = _end_of_wire(NEAR_HOST, FAR_HOST)
            enter_own()
            far = _end_of_wire(FAR_HOST, NEAR_HOST)
            os.write(says_ready, b"y")
            os.close(says_ready)
            _carry(near, far, delay_s)
    except OSError as error:
        print(f"wire: {error}", file=sys.stderr)
    finally:
        os._exit(1)


def _carry(near, far, delay_s):
    waiting = collections.deque()  # (when it arrives, packet); the first one arrives first.
    while True:
        timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([near, far], [], [], timeout)
        if near in readable:
            waiting.append((time.monotonic() + delay_s, os.read(near, PACKET_MAX)))
        if far in readable:
            os.write(near, os.read(far, PACKET_MAX))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(far, waiting.popleft()[1])
