/* SPDX-License-Identifier: Apache-2.0 */
/* As in C, & binds weaker than ==, and | weaker than ^ and &. */
BEGIN
{
	x = 6;
	printf("%d %d %d\n", x & 3 == 3, 1 | 2 ^ 3 & 5, 1 << 2 + 1);
	exit(0);
}
/* output:
0 3 8

*/
