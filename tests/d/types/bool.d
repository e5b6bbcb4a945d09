/* SPDX-License-Identifier: Apache-2.0 */
/* _Bool has one byte, and a cast to it gives 0 or 1. */
BEGIN
{
	x = 256;
	printf("%d %d\n", sizeof (_Bool), (_Bool)x);
	exit(0);
}
/* output:
1 1

*/
