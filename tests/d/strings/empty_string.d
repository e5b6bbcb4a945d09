/* SPDX-License-Identifier: Apache-2.0 */
/* The empty string is less than all others and not NULL. */
BEGIN
{
	e = "";
	printf("%d %d %d [%s]\n", e == "", e < "a", strlen(e), e);
	exit(0);
}
/* output:
1 1 0 []

*/
