/* SPDX-License-Identifier: Apache-2.0 */
/* ?: with each outcome, nested to the right. */
BEGIN
{
	x = 2;
	printf("%d %d\n", x == 2 ? 10 : 20, x == 3 ? 10 : 20);
	printf("%s\n", x == 1 ? "one" : x == 2 ? "two" : "many");
	exit(0);
}
/* output:
10 20
two

*/
