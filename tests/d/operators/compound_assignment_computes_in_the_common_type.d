/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: c += 200 computes in int, then cuts to char. */
char c;
BEGIN
{
	c = 100;
	c += 200;
	printf("%d\n", c);
	exit(0);
}
/* output:
44

*/
