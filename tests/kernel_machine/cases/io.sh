#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# io: the bytes that dd writes to a disk are those of the requests that start and of those that end,
# and dd waits for each.
# output:
# start 16 requests, 65536 bytes
# done 16 requests, 65536 bytes
# waits 16, for 16
#
"$CLEW" dtrace -q -c "dd if=/dev/zero of=/dev/nullb0 bs=4096 count=16 oflag=direct status=none" -n '
io:::start
/args[1]->dev_statname == "nullb0" && (args[0]->b_flags & B_WRITE)/
{
	starts++;
	started += args[0]->b_bcount;
}
io:::done
/args[1]->dev_statname == "nullb0" && (args[0]->b_flags & B_WRITE)/
{
	dones++;
	done += args[0]->b_bcount;
}
io:::wait-start
/pid == $target/
{
	waits++;
}
io:::wait-done
/pid == $target/
{
	waited++;
}
END
{
	printf("start %d requests, %d bytes\n", starts, started);
	printf("done %d requests, %d bytes\n", dones, done);
	printf("waits %d, for %d\n", waits, waited);
}'
