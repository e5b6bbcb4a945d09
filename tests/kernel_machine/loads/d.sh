#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# D's copyin(), copyinstr() and members of a structure; what cannot be read is an error each time.
# output:
# inline: True
# its vDSO is changed: True
# value 7, 60 times
# first of two, 30 times
# errors 510
# take_node 300
# left: 0
# its vDSO is changed: False
VDSO=1 "$HERE/trace_victim" pointers '
BEGIN { printf("armed\n"); }
pid$target::take_node:entry { @v[*(long *)copyin(arg0, 8)] = count(); }
pid$target::take_node:entry { @n[copyinstr(arg0 + 16)] = count(); }
dtrace:::ERROR { @errors = count(); }
END {
  printa("value %d, %@d times\n", @v);
  printa("%s, %@d times\n", @n);
  printa("errors %@d\n", @errors);
}' 'kinds 30' 2> /tmp/errors
