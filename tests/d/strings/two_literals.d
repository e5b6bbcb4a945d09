/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: literals are compared, too. */
BEGIN
{
	printf("%d %d %d\n", "a" == "a", "a" != "b", "b" < "a");
	exit(0);
}
/* output:
1 1 0

*/
