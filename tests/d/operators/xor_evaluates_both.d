/* SPDX-License-Identifier: Apache-2.0 */
/* ^^ cannot stop early. */
BEGIN
{
	n = 0;
	x = 1 ^^ ++n;
	printf("%d %d\n", x, n);
	exit(0);
}
/* output:
0 1

*/
