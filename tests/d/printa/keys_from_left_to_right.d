/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 32: conversions without @ take the keys in order; unused keys are fine. */
BEGIN
{
	@a["x", 7, 'c'] = count();
	printa("%s %d %c %@d\n", @a);
	printa("%@d %s\n", @a);
	printa("constant\n", @a);
	exit(0);
}
/* output:
x 7 c 1
1 x
constant

*/
