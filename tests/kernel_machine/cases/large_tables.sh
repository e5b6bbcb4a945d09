#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The largest cells and keys (four texts of 1,024 bytes), for a verifier that walks through the
# rounds of a loop.
# output:
# 1 2
# 9000 1
"$CLEW" dtrace -q -x strsize=1016 -n '
BEGIN
{
	x["", "", "", "c"] = 1;
	x["", "", "", "d"] = 2;
	printf("%d", x["", "", "", "c"]);
	printf(" %d\n", x["", "", "", "d"]);
	@[1] = lquantize(9000, 0, 65535, 1);
	exit(0);
}' | awk 'NF == 2 { print } /@@@/ { print $1, $3 }'
