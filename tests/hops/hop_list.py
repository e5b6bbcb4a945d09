# SPDX-License-Identifier: Apache-2.0
"""The hops that can be judged: which event behind belongs to which one in front, where both have
the id of their request in a text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    source: str
    text: str  # Of the event `e`.
    condition: str = ""

    def text_of(self, name):
        return self.text.replace("e.", f"{name}.")

    def condition_of(self, name):
        return f"where {self.condition.replace('e.', f'{name}.')} " if self.condition else ""


@dataclass(frozen=True)
class Hop:
    name: str
    front: Event
    behind: Event
    servers: tuple  # Those that a request passes, which are all traced.
    paths: tuple  # What is sent.
    reaching: tuple  # Those of the paths whose requests get to the event behind.
    entrance: str = "haproxy"  # The server that the load goes to.
    chosen: str = "MostRecent"  # Of several events in front.
    believes: str = "recipe"

    @property
    def needs_root(self):
        """The kernel knows what goes from a process to another one."""
        return len(self.servers) > 1

    def query(self):
        return (f"from b in {self.behind.source} {self.behind.condition_of('b')}"
                f"left join f in {self.chosen}({self.front.source}) on f -> b "
                f"with cause >= {self.believes} "
                f"select {self.front.text_of('f')} as front, {self.behind.text_of('b')} as behind, "
                "f.pid as front_pid, f.tid as front_tid, f.time as front_time, "
                "b.pid, b.tid, b.time")


# A request as a proxy has read it, without a name of a function; it may try to read more. nginx
# reads by another call.
READS = Event('syscall_return("read")', "str(e.entry.buf, 64)")
RECEIVES = Event('syscall_return("recvfrom")', "str(e.entry.ubuf, 64)")
HAPROXY = Event("haproxy.request", "e.line")
APACHE = Event("apache.request", "e.line")
NGINX = Event("nginx.request_line", "e.line")
# Its binary has no names of functions.
MEMCACHED = Event('syscall_return("read")', "str(e.entry.buf, 64)",
                  'e.procName == "memcached" and e.retval > 8')
REDIS = Event("redis.lookup", "e.key")
STATEMENT = Event("postgresql.statement", "e.query")
PLAN = Event('entry("postgres!pg_plan_query")', "str(e.arg1, 256)")


def of_app(variant, function):
    return Event(f'entry("hops_{variant}!{function}")', "str(e.arg0, 32)")


# A request has been read, a thread begins to work for it, and is about to answer.
READ = {variant: of_app(variant, "on_request")
        for variant in ("threads", "pool", "says", "tasks", "glib", "uv")}
ANSWERS = {variant: of_app(variant, "before_answer") for variant in READ}
WORKED = {variant: of_app(variant, "work_on") for variant in READ}

# Paths: m memcached; t, w, s the application by threads, by a pool, and by a pool that says causes;
# d is t behind a timer of nginx, and a is two requests to t, one behind the other.
HOPS = (
    Hop("haproxy-nginx", HAPROXY, NGINX, ("haproxy", "nginx"), ("m", "t"), ("m", "t")),
    Hop("nginx-memcached", NGINX, MEMCACHED, ("nginx", "memcached"), ("m", "t"), ("m",)),
    Hop("nginx-app", NGINX, READ["threads"], ("nginx", "threads"), ("m", "t"), ("t",)),
    Hop("nginx-pool", NGINX, READ["pool"], ("nginx", "pool"), ("m", "w"), ("w",)),
    Hop("nginx-delayed", NGINX, READ["threads"], ("nginx", "threads"), ("m", "m", "d", "t"),
        ("d",)),
    Hop("nginx-asking", NGINX, READ["threads"], ("nginx", "threads"), ("m", "a", "t"), ("a",)),
    Hop("app-redis", READ["threads"], REDIS, ("threads", "redis"), ("t",), ("t",)),
    Hop("app-postgresql", READ["threads"], STATEMENT, ("threads", "postgresql"), ("t",), ("t",)),
    Hop("pool-redis", READ["pool"], REDIS, ("pool", "redis"), ("w",), ("w",)),
    Hop("pool-postgresql", READ["pool"], STATEMENT, ("pool", "postgresql"), ("w",), ("w",)),
    Hop("says-redis", READ["says"], REDIS, ("says", "redis"), ("s",), ("s",)),
    Hop("haproxy-app", HAPROXY, READ["threads"], ("haproxy", "nginx", "threads"), ("m", "t"),
        ("t",)),
    Hop("haproxy-redis", HAPROXY, REDIS, ("haproxy", "nginx", "threads", "redis"), ("m", "t"),
        ("t",)),
    Hop("haproxy-postgresql", HAPROXY, STATEMENT, ("haproxy", "nginx", "threads", "postgresql"),
        ("m", "t"), ("t",)),
    # With the answers, on their way back.
    Hop("redis-app", REDIS, ANSWERS["threads"], ("threads", "redis"), ("t",), ("t",)),
    Hop("redis-pool", REDIS, ANSWERS["pool"], ("pool", "redis"), ("w",), ("w",)),
    Hop("postgresql-app", STATEMENT, ANSWERS["threads"], ("threads", "postgresql"), ("t",),
        ("t",)),
    # Within a program; what the judge says of these was known before it judged the others.
    Hop("within-pool", READ["pool"], WORKED["pool"], ("pool",), ("w",), ("w",)),
    Hop("within-says", READ["says"], WORKED["says"], ("says",), ("s",), ("s",)),
    Hop("within-postgresql", STATEMENT, PLAN, ("postgresql",), ("t",), ("t",)),
    # Other proxies in front of nginx.
    Hop("apache-nginx", APACHE, NGINX, ("apache", "nginx"), ("m", "t"), ("m", "t"),
        entrance="apache"),
    Hop("prefork-nginx", APACHE, NGINX, ("prefork", "nginx"), ("m", "t"), ("m", "t"),
        entrance="prefork"),
    Hop("squid-nginx", READS, NGINX, ("squid", "nginx"), ("m", "t"), ("m", "t"),
        entrance="squid", chosen="First"),
    # Pools of threads, which the load goes to.
    Hop("tasks-redis", READ["tasks"], REDIS, ("tasks", "redis"), ("r",), ("r",), entrance="tasks"),
    Hop("glib-redis", READ["glib"], REDIS, ("glib", "redis"), ("r",), ("r",), entrance="glib"),
    Hop("uv-redis", READ["uv"], REDIS, ("uv", "redis"), ("r",), ("r",), entrance="uv"),
    # Interpreters, of which nothing is believed: no pair is the right answer. What is guessed of
    # node is wrong for some of the requests that have to wait for a connection.
    Hop("node-nginx", READS, NGINX, ("node_proxy.js", "nginx"), ("m", "t"), ("m", "t"),
        entrance="node_proxy.js", chosen="First"),
    Hop("guess-node-nginx", READS, NGINX, ("node_proxy.js", "nginx"), ("m", "t"), ("m", "t"),
        entrance="node_proxy.js", chosen="First", believes="heuristic"),
    Hop("asyncio-redis", RECEIVES, REDIS, ("asyncio_app.py", "redis"), ("r",), ("r",),
        entrance="asyncio_app.py", chosen="First"),
    Hop("python-redis", RECEIVES, REDIS, ("python_pool.py", "redis"), ("r",), ("r",),
        entrance="python_pool.py", chosen="First"),
)
