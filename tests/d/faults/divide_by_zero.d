/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 15 and 44: a division by zero at run time has code 4. */
/* stderr: divide-by-zero */
BEGIN
{
	x = 0;
	y = 10 / x;
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
