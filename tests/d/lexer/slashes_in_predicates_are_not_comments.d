/* SPDX-License-Identifier: Apache-2.0 */
/* A predicate with a division in parentheses ends at the right slash. */
BEGIN
/(8 / 2) == 4/
{
	printf("%d\n", 12 / 4);
	exit(0);
}
/* output:
3

*/
