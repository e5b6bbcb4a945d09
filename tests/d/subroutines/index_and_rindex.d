/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: positions from the left and right, -1 when there is none. */
BEGIN
{
	s = "fooeyfooeyfoo";
	printf("%d %d %d %d\n", index(s, "foo"), index(s, "eyf"), rindex(s, "foo"), rindex(s, "ey"));
	printf("%d %d\n", index(s, "bar"), rindex(s, "bar"));
	exit(0);
}
/* output:
0 3 10 8
-1 -1

*/
