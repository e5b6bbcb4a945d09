# SPDX-License-Identifier: Apache-2.0
"""What tokens cost (clew/cause.h): in a program that nobody traces, and in a join."""

from table import Row, interleave
from tracing import Clew, Program

BURSTS, PAIRS, REST_US = 40, 1000, 20_000
QUERY = ('from e in entry("tokens!burst") join f in First(entry("tokens!burst")) on f -> e '
         "select count()")


def time(program):
    return program.ask(f"time {BURSTS} {PAIRS} {REST_US}")


def traced(program):
    """All tokens are received in their request, or the figure means nothing."""
    with Clew(program.pid, QUERY) as session:
        answer = time(program)
    followed = session.summary["by_cause"].get("explicit", 0)
    if followed != answer["pairs"] or session.lost():
        raise RuntimeError(f"followed {followed} of {answer['pairs']} tokens")
    return answer["ns_per_send"] + answer["ns_per_receive"]


def token_rows(folder, repetitions):
    made = Row("a token, made and sent, untraced", "", "ns", None)
    read = Row("a token, received, untraced", "", "ns", None)
    pair = Row("a token, sent and received, in a join", "<= 400 ns", "ns", 400)
    with Program(folder / "tokens") as program:
        time(program)  # Warm.
        found = interleave(repetitions, {"send": lambda: time(program)["ns_per_send"],
                                         "receive": lambda: time(program)["ns_per_receive"],
                                         "clew": lambda: traced(program)}, pair.measure)
    for name, row in (("send", made), ("receive", read)):
        row.set(found[name].median, found[name].spread, "")
    if isinstance(found["clew"], str):
        return [made, read, pair.fail(found["clew"])]
    plain = found["send"].median + found["receive"].median
    net = found["clew"].against(found["clew"], lambda mine, unused: mine - plain)
    return [made, read, pair.set(net.median, net.spread, "", f"untraced {plain:,.0f} ns")]
