/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: int against unsigned int is compared unsigned, against long signed. */
BEGIN
{
	s = -1;
	u = 1u;
	l = 1ll;
	printf("%d %d %d\n", s < u, s < l, s > u);
	exit(0);
}
/* output:
0 1 1

*/
