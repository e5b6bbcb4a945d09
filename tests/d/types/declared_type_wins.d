/* SPDX-License-Identifier: Apache-2.0 */
/* A declared variable keeps its type whatever is assigned. */
int16_t s;
BEGIN
{
	s = 70000ll;
	printf("%d %d\n", s, sizeof (s));
	exit(0);
}
/* output:
4464 2

*/
