/* SPDX-License-Identifier: Apache-2.0 */
/* A process becomes another program; env execs what it is given. */
/* flags: -q -c "/usr/bin/env true" */
proc:::exec-success
/pid == $target && execname == "true"/
{
	printf("%s\n", curpsinfo->pr_fname);
}
/* output:
true

*/
