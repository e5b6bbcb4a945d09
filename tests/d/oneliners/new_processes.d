/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
proc:::exec-success
{
	printf("%Y %d %s", walltimestamp, pid, curpsinfo->pr_psargs);
}
