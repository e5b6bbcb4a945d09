/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: -2 becomes unsigned int before it is divided by one. */
BEGIN
{
	a = -2;
	printf("%d\n", a / 2u);
	exit(0);
}
/* output:
2147483647

*/
