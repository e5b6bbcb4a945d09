/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: aggsortpos chooses the aggregation that decides the order. */
/* flags: -q -xaggsortpos=1 */
BEGIN
{
	@n["a"] = sum(1); @s["a"] = sum(30);
	@n["b"] = sum(2); @s["b"] = sum(20);
	@n["c"] = sum(3); @s["c"] = sum(10);
	printa("%s %@d %@d\n", @n, @s);
	exit(0);
}
/* output:
c 3 10
b 2 20
a 1 30

*/
