/* SPDX-License-Identifier: Apache-2.0 */
/* Suffixes u, l, ll and their combinations are accepted and decide size and sign. */
BEGIN
{
	printf("%d %d %d %d\n", sizeof (1u), sizeof (1l), sizeof (1ull), sizeof (1LL));
	printf("%d %d\n", -1 < 0u, -1 < 0);
	exit(0);
}
/* output:
4 8 8 8
0 1

*/
