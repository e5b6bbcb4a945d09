# SPDX-License-Identifier: Apache-2.0
"""What joins by cause cost a message: its send and its receive are two events of the kernel."""

import tempfile

from table import Row, Sample, interleave
from tracing import Bpftrace, Clew, Program

BURSTS, MESSAGES, REST_US = 40, 2000, 20_000
QUERY = ('from e in entry("messages!burst") join f in First(entry("messages!burst")) on f -> e '
         "select count()")
PROFILE = '[[program]]\nname = "messages"\nonward = "blocking"\n'
# The same two events, without their ends, numbers and lengths.
PEER = ("tracepoint:sock:sock_send_length, tracepoint:sock:sock_recv_length /pid == PID/ "
        "{ @ = count(); }")


def time(program):
    return program.ask(f"time {BURSTS} {MESSAGES} {REST_US}")


def traced(program, vocabulary):
    """ns a pair. All messages but the first are of its request, or the figure means nothing."""
    with Clew(program.pid, QUERY, ["--vocabulary", vocabulary]) as session:
        answer = time(program)
    known = session.summary["by_cause"]
    followed = known.get("recipe", 0) + known["requests"]
    if followed != answer["pairs"] or session.lost() > BURSTS:
        raise RuntimeError(f"followed {followed} of {answer['pairs']} messages")
    return answer["ns_per_pair"]


def under_bpftrace(program):
    with Bpftrace(PEER.replace("PID", str(program.pid))):
        return time(program)["ns_per_pair"]


def message_rows(folder, repetitions):
    row = Row("a message by TCP, sent and received, in a join", "<= 400 ns", "ns", 400)
    with Program(folder / "messages") as program, \
            tempfile.NamedTemporaryFile("w", suffix=".toml") as vocabulary:
        vocabulary.write(PROFILE)
        vocabulary.flush()
        time(program)  # Warm.
        measures = {"untraced": lambda: time(program)["ns_per_pair"],
                    "clew": lambda: traced(program, vocabulary.name)}
        if Bpftrace.usable():
            measures["bpftrace"] = lambda: under_bpftrace(program)
        found = interleave(repetitions, measures, row.measure)
    base, other = found["untraced"], found.get("bpftrace")
    if isinstance(found["clew"], str):
        return [row.fail(found["clew"])]
    net = found["clew"].against(base, lambda mine, plain: mine - plain)
    peer = f"{other.median - base.median:,.0f} ns" if isinstance(other, Sample) else ""
    return [row.set(net.median, net.spread, peer,
                    f"untraced {base.median:,.0f} ns; bpftrace counts both")]
