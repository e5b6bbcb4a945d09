/* SPDX-License-Identifier: Apache-2.0 */
/* An expression that needs many registers at once. */
BEGIN
{
	a = 1; b = 2; c = 3; d = 4;
	printf("%d\n", (a + b * (c + d * (a + b * (c + d * (a + b * (c + d)))))));
	exit(0);
}
/* output:
1023

*/
