/* SPDX-License-Identifier: Apache-2.0 */
/* An element may be the key of another array. */
BEGIN
{
	a["x"] = 4;
	b[a["x"]] = "four";
	printf("%s\n", b[4]);
	exit(0);
}
/* output:
four

*/
