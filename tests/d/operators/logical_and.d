/* SPDX-License-Identifier: Apache-2.0 */
/* && gives 0 or 1. */
BEGIN
{
	a = 5;
	z = 0;
	printf("%d %d %d %d\n", a && a, a && z, z && a, z && z);
	exit(0);
}
/* output:
1 0 0 0

*/
