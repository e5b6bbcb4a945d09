/* SPDX-License-Identifier: Apache-2.0 */
/* The four parts of the probe's name. */
BEGIN
{
	printf("[%s] [%s] [%s] [%s] %d\n", probeprov, probemod, probefunc, probename, id);
	exit(0);
}
/* output:
[dtrace] [] [] [BEGIN] 1

*/
