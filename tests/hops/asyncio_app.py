# SPDX-License-Identifier: Apache-2.0
"""An application in Python's asyncio that asks redis for GET /r/ID, over few connections that
requests wait for.

    asyncio_app.py PORT HOST:PORT
"""

import asyncio
import sys

CONNECTIONS = 4


async def ask(connections, identity):
    reader, writer = await connections.get()
    writer.write(f"GET hops:{identity}\r\n".encode())
    await reader.readline()  # The size of the value.
    value = await reader.readline()
    connections.put_nowait((reader, writer))
    return value.decode().strip()


async def serve(connections, reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            identity = head.split(b" ", 2)[1].decode().rsplit("/", 1)[1]
            body = f"{identity} {await ask(connections, identity)}"
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    host, port = sys.argv[2].split(":")
    connections = asyncio.Queue()
    for _ in range(CONNECTIONS):
        connections.put_nowait(await asyncio.open_connection(host, int(port)))
    server = await asyncio.start_server(lambda *client: serve(connections, *client), "127.0.0.1",
                                        int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
