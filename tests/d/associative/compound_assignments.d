/* SPDX-License-Identifier: Apache-2.0 */
/* Compound assignments of elements. */
BEGIN
{
	a["x"] += 5;
	a["x"] *= 3;
	a["x"] -= 1;
	a["x"] <<= 2;
	printf("%d\n", a["x"]--);
	printf("%d\n", a["x"]);
	exit(0);
}
/* output:
56
55

*/
