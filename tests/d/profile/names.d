/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the probes that fire. */
tick-30ms
{
	printf("%s:%s:%s:%s\n", probeprov, probemod, probefunc, probename);
	exit(0);
}
/* output:
profile:::tick-30ms

*/
