/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: a key that an aggregation does not have has value 0 there. */
BEGIN
{
	@n["a"] = sum(1);
	@n["b"] = sum(2);
	@s["b"] = sum(20);
	@s["c"] = sum(30);
	printa("%s %@d %@d\n", @n, @s);
	exit(0);
}
/* output:
c 0 30
a 1 0
b 2 20

*/
