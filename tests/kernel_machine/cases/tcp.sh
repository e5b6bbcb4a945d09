#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tcp: three connections that a program makes to itself, and one that nobody accepts.
# output:
# connected 3, accepted 3, asked 4
#
cat > /tmp/connections.py <<'END'
import socket
server = socket.create_server(("127.0.0.1", 5006))
for _ in range(3):
    with socket.create_connection(("127.0.0.1", 5006)):
        server.accept()[0].close()
server.close()
try:
    socket.create_connection(("127.0.0.1", 5006))
except ConnectionRefusedError:
    pass
END
"$CLEW" dtrace -q -c "/usr/bin/python3 /tmp/connections.py" -n '
tcp:::connect-request
{
	asked++;
}
tcp:::connect-established
{
	connected++;
}
tcp:::accept-established
{
	accepted++;
}
END
{
	printf("connected %d, accepted %d, asked %d\n", connected, accepted, asked);
}'
