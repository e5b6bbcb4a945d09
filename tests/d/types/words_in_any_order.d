/* SPDX-License-Identifier: Apache-2.0 */
/* As in C, the words of a type may stand in any order. */
long unsigned int a;
int short b;
long long unsigned c;
BEGIN
{
	b = -2;
	printf("%d %d %d %d\n", sizeof (a), sizeof (b), sizeof (c), b);
	exit(0);
}
/* output:
8 2 8 -2

*/
