/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: rindex searches from the position to the left. */
BEGIN
{
	s = "fooeyfooeyfoo";
	printf("%d %d %d\n", rindex(s, "foo", 9), rindex(s, "foo", 5), rindex(s, "foo", 4));
	exit(0);
}
/* output:
5 5 0

*/
