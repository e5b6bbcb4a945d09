#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions of a module: each block that dd writes past the page cache is one request to the driver.
# output:
# 16 requests
#
"$CLEW" dtrace -q -c "dd if=/dev/zero of=/dev/nullb0 bs=4096 count=16 oflag=direct status=none" -n '
fbt:null_blk:null_queue_rq:entry
{
	n++;
}
END
{
	printf("%d requests\n", n);
}'
