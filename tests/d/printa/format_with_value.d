/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %@d is the value, for each key. */
BEGIN
{
	@a["x"] = sum(1);
	@a["y"] = sum(2);
	printa("value %@d\n", @a);
	exit(0);
}
/* output:
value 1
value 2

*/
