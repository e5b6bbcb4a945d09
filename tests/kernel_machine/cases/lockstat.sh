#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lockstat: dd takes the lock of its pipe once for each byte that it reads from it, and lets it go
# as often. (Its function has another name from some kernel behind 6.12 on.)
# output:
# acquired 200 or more: 1, as often as released: 1
#
printf '%0200d' 0 > /tmp/digits
reader="dd of=/dev/null bs=1 count=200 status=none"
"$CLEW" dtrace -q -Z -c "/bin/sh -c 'cat /tmp/digits | $reader'" -n '
fbt::pipe_read:entry,
fbt::anon_pipe_read:entry
/execname == "dd"/
{
	self->in = 1;
}
lockstat:::adaptive-acquire
/self->in/
{
	acquired++;
	locks[arg0]++;
	held += locks[arg0] == 1;
}
lockstat:::adaptive-release
/self->in/
{
	released++;
	locks[arg0]--;
}
fbt::pipe_read:return,
fbt::anon_pipe_read:return
/self->in/
{
	self->in = 0;
}
END
{
	printf("acquired 200 or more: %d, as often as released: %d\n", acquired >= 200,
	    acquired == released && held == acquired);
}'
