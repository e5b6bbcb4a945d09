/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of faults are unsigned integers to printf(), those of ERROR and those with names. */
BEGIN
{
	printf("%u %u %u %u\n", DTRACEFLT_UNKNOWN, DTRACEFLT_BADADDR, DTRACEFLT_DIVZERO,
	    DTRACEFLT_BADSTACK);
}
BEGIN
{
	x = *(int *)0x10;
}
BEGIN
{
	x = 1 / (pid - pid);
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("%u %u\n", arg4, arg4 == DTRACEFLT_BADADDR ? DTRACEFLT_BADADDR : DTRACEFLT_DIVZERO);
}
/* output:
0 1 4 9
1 1
4 4

*/
