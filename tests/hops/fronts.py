# SPDX-License-Identifier: Apache-2.0
"""More servers for the test bed: proxies in front of its nginx, and applications in front of its
redis. A hop that needs one has it started; load goes to it, and not to HAProxy."""

import functools
import pwd
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

# It has the modules that Debian's own configuration loads for a proxy, and one of the two ways to
# work for connections.
APACHE = """\
ServerRoot {folder}
ServerName hops
PidFile {folder}/{name}.pid
DefaultRuntimeDir {folder}
ErrorLog /dev/stderr
LogLevel error
Listen 127.0.0.1:{port}
LoadModule mpm_{model}_module {modules}/mod_mpm_{model}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
{user}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
{processes}
ProxyPass / http://127.0.0.1:{nginx}/ keepalive=On
"""
APACHE_PROCESSES = {
    "event": "StartServers 2\nServerLimit 2\nThreadsPerChild 16\nMaxRequestWorkers 32",
    "prefork": "StartServers 24\nMinSpareServers 1\nMaxSpareServers 48\nMaxRequestWorkers 48",
}
USER = "User {somebody}\nGroup #{group}"
ORIGIN = "origin"
APACHE_MODULES = "/usr/lib/apache2/modules"

SQUID = """\
http_port 127.0.0.1:{port} accel defaultsite=hops no-vhost
cache_peer 127.0.0.1 parent {behind} 0 no-query no-digest originserver name=behind
acl all_paths url_regex .
cache_peer_access behind allow all_paths
http_access allow all
{cache}
access_log none
cache_log /dev/stderr
cache_store_log none
pid_filename {folder}/squid-{port}.pid
coredump_dir {folder}
pinger_enable off
cache_effective_user {somebody}
visible_hostname hops
shutdown_lifetime 0 seconds
via off
"""


@dataclass(frozen=True)
class Place:
    """Where a server is started."""
    folder: Path
    ports: dict
    program: Callable  # The path of a program that is there, by its name or path.
    built: Path  # The folder of the applications that are built.
    somebody: str  # A user that servers run as when root starts them.
    is_root: bool
    redis: str  # HOST:PORT
    postgresql: str


# Each writes what its server needs, and gives the command.

def apache(place, name, model):
    configuration = place.folder / f"{name}.conf"
    configuration.write_text(APACHE.format(
        folder=place.folder, name=name, port=place.ports[name], model=model,
        modules=APACHE_MODULES, nginx=place.ports["nginx"], processes=APACHE_PROCESSES[model],
        user=USER.format(somebody=place.somebody, group=pwd.getpwnam(place.somebody).pw_gid)
        * place.is_root))
    # It ends by ending its process group.
    return ["setsid", place.program("apache2"), "-f", str(configuration), "-DFOREGROUND"]


def squid(place, name, behind, cache):
    configuration = place.folder / f"{name}.conf"
    configuration.write_text(SQUID.format(
        folder=place.folder, port=place.ports[name], behind=place.ports[behind], cache=cache,
        somebody=place.somebody))
    # Without shared memory, and without a process that starts the one that works.
    return [place.program("squid"), "-N", "-f", str(configuration)]


def application(place, name):
    """Of app.cc, in front of redis alone."""
    built = place.program(str(place.built / f"hops_{name}"))
    return [built, str(place.ports[name]), place.redis, place.postgresql]


def script(place, name, interpreter, behind):
    nginx = f"127.0.0.1:{place.ports['nginx']}"
    return [place.program(interpreter), str(HERE / name), str(place.ports[name]),
            place.redis if behind == "redis" else nginx]


FRONTS = {
    "apache": functools.partial(apache, model="event"),
    "prefork": functools.partial(apache, model="prefork"),
    "squid": functools.partial(squid, behind="nginx", cache="cache deny all"),
    # In front of a server that a test has itself; clients that ask for the same share its answer.
    "caching_squid": functools.partial(
        squid, behind=ORIGIN, cache="memory_cache_shared off\ncollapsed_forwarding on"),
    "tasks": application,
    "glib": application,
    "uv": application,
    # Debian's own interpreter, whatever a user has on PATH.
    "asyncio_app.py": functools.partial(script, interpreter="/usr/bin/python3", behind="redis"),
    "node_proxy.js": functools.partial(script, interpreter="node", behind="nginx"),
    "python_pool.py": functools.partial(script, interpreter="/usr/bin/python3", behind="redis"),
}
