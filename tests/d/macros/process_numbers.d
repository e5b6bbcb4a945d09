/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: $pid and $ppid are those of the tracer, in which BEGIN fires. */
BEGIN
{
	printf("%d %d\n", $pid == pid, $ppid == ppid);
	exit(0);
}
/* output:
1 1

*/
