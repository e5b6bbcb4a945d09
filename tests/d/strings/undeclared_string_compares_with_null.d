/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: results of strchr can be compared with NULL. */
BEGIN
{
	printf("%d %d\n", strchr("abc", 'x') == NULL, strchr("abc", 'b') == NULL);
	printf("%d %d\n", strstr("abc", "x") == NULL, strstr("abc", "bc") == NULL);
	exit(0);
}
/* output:
1 0
1 0

*/
