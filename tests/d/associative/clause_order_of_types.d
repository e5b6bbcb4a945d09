/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: an array's signature comes from its first use, in the order of the program. */
BEGIN
{
	a["x"] = 1ll;
}
BEGIN
{
	a["y"] = 0x100000000;
	printf("%x\n", a["y"]);
	exit(0);
}
/* output:
100000000

*/
