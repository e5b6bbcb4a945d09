/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: rows are joined by key and sorted by the first aggregation. */
BEGIN
{
	@n["a"] = sum(3); @s["a"] = sum(30);
	@n["b"] = sum(1); @s["b"] = sum(10);
	@n["c"] = sum(2); @s["c"] = sum(20);
	printa("%s %@d %@d\n", @n, @s);
	exit(0);
}
/* output:
b 1 10
c 2 20
a 3 30

*/
