/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: one column for each aggregation. */
BEGIN
{
	@n["a"] = sum(1);
	@s["a"] = sum(10);
	printa(@n, @s);
	exit(0);
}
/* output:

  a                                                                 1               10

*/
