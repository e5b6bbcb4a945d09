/* SPDX-License-Identifier: Apache-2.0 */
/* The number of a member. */
BEGIN
{
	printf("%d\n", strtoll(json("{\"n\": -15}", "n")) + 1);
	exit(0);
}
/* output:
-14

*/
