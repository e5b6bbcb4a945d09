#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# udp and ip: 25 datagrams of 10 bytes that a program sends to itself.
# output:
# udp sent 25, received 25
#
cat > /tmp/datagrams.py <<'END'
import socket
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to.bind(("127.0.0.1", 5005))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(25):
    sender.sendto(b"0123456789", ("127.0.0.1", 5005))
    to.recv(100)
END
"$CLEW" dtrace -q -c "/usr/bin/python3 /tmp/datagrams.py" -n '
udp:::send
/pid == $target/
{
	sent++;
}
udp:::receive
{
	received++;
}
END
{
	printf("udp sent %d, received %d\n", sent, received);
}'
