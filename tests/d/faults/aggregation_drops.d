/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 45: no room for a key: counted. */
/* flags: -q -xaggsize=1k */
/* stderr: aggregation drop */
tick-1ms
{
	i++;
	@a[i, "a long string as a key"] = count();
}
tick-1ms
/i == 200/
{
	trunc(@a);
	exit(0);
}
/* output:

*/
