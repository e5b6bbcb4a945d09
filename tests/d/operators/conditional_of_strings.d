/* SPDX-License-Identifier: Apache-2.0 */
/* Strings on both sides, from variables. */
BEGIN
{
	a = "left";
	b = "right";
	t = 0;
	printf("%s %s\n", t ? a : b, !t ? a : b);
	exit(0);
}
/* output:
right left

*/
