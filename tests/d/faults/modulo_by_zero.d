/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15 and 44: so does a modulo. */
/* stderr: divide-by-zero */
BEGIN
{
	x = 0ll;
	y = 10 % x;
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("%d\n", arg4);
}
/* output:
4

*/
