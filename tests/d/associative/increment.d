/* SPDX-License-Identifier: Apache-2.0 */
/* ++ of an element that does not exist makes it. */
BEGIN
{
	a["x"]++;
	a["x"]++;
	++a["y"];
	printf("%d %d\n", a["x"], a["y"]);
	exit(0);
}
/* output:
2 1

*/
