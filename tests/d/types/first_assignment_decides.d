/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 12: an undeclared variable takes the type of its first assignment. */
BEGIN
{
	a = (char)1;
	b = 1;
	c = 1ll;
	d = "string";
	printf("%d %d %d %d\n", sizeof (a), sizeof (b), sizeof (c), sizeof (d));
	exit(0);
}
/* output:
1 4 8 256

*/
