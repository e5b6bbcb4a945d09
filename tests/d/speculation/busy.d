/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 45: one that is being committed is not free yet. */
/* flags: -q -x nspec=1 */
/* stderr: dtrace: 1 failed speculation (available buffer(s) still busy) */
BEGIN { s = speculation(); }
BEGIN { commit(s); }
BEGIN { t = speculation(); }
BEGIN
{
	printf("%d %d\n", s, t);
	exit(0);
}
/* output:
1 0

*/
