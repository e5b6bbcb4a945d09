/* SPDX-License-Identifier: Apache-2.0 */
/* A predicate may store. */
BEGIN
/x++ == 0/
{
	printf("%d\n", x);
	exit(0);
}
/* output:
1

*/
