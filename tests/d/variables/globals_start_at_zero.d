/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 12: declared variables that were never stored are 0. */
int i;
uint64_t u;
self int t;
BEGIN
{
	printf("%d %d %d\n", i, u, self->t);
	exit(0);
}
/* output:
0 0 0

*/
