/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: DTRACEFLT_ names. */
BEGIN
{
	printf("%d %d %d %d %d\n", DTRACEFLT_BADADDR, DTRACEFLT_BADALIGN, DTRACEFLT_ILLOP,
	    DTRACEFLT_DIVZERO, DTRACEFLT_NOSCRATCH);
	exit(0);
}
/* output:
1 2 3 4 5

*/
