/* SPDX-License-Identifier: Apache-2.0 */
/* Values are cut to their type where they are stored, cast or passed, not between operators. */
int i;
int j;
BEGIN
{
	i = 1000000;
	printf("%d\n", i - (4 * i) * i / i * i / i);
	printf("%d\n", (i * i) / i);
	printf("%d\n", 1000000 * 1000000 / 1000000);
	j = i * i;
	printf("%d %d\n", j, i * i);
	printf("%d\n", (long long)(i * i) == j);
	printf("%d\n", i * i > 0);
	exit(0);
}
/* output:
-3000000
1000000
1000000
-727379968 -727379968
1
1

*/
