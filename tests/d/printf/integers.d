/* SPDX-License-Identifier: Apache-2.0 */
/* %d, %i, %u, %x, %X and %o. */
BEGIN
{
	printf("%d %i %u %x %X %o\n", -5, -5, 5, 0xabc, 0xabc, 8);
	exit(0);
}
/* output:
-5 -5 5 abc ABC 10

*/
