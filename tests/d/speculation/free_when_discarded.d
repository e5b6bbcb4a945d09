/* SPDX-License-Identifier: Apache-2.0 */
/* What is discarded is free at once, and its next use holds nothing of the last. */
/* flags: -q -x nspec=1 */
BEGIN { s = speculation(); }
BEGIN { speculate(s); printf("of the first\n"); }
BEGIN { discard(s); }
BEGIN { t = speculation(); }
BEGIN { speculate(t); printf("of the second\n"); }
BEGIN { commit(t); }
BEGIN
{
	printf("%d %d\n", s, t);
	exit(0);
}
/* output:
of the second
1 1

*/
