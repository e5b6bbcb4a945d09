/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: an aggregation before the fault counts, one after it does not. */
BEGIN
{
	@a["before"] = count();
	y = *(int *)NULL;
	@a["after"] = count();
}
BEGIN
{
	exit(0);
}
END
{
	printa("%s %@d\n", @a);
}
/* output:
before 1

*/
