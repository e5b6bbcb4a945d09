/* SPDX-License-Identifier: Apache-2.0 */
/* rand() gives different values. */
BEGIN
{
	a = rand();
	b = rand();
	c = rand();
	printf("%d %d\n", a == b && b == c, sizeof (rand()));
	exit(0);
}
/* output:
0 4

*/
