/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: with a third argument the search begins there. */
BEGIN
{
	s = "fooeyfooeyfoo";
	printf("%d %d %d\n", index(s, "foo", 1), index(s, "foo", 6), index(s, "foo", 11));
	printf("%d %d %d\n", index(s, "foo", 0), index(s, "foo", -10), index(s, "foo", 100));
	exit(0);
}
/* output:
5 10 -1
0 0 -1

*/
