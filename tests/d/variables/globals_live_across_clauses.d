/* SPDX-License-Identifier: Apache-2.0 */
/* A global is seen by later clauses and END. */
BEGIN
{
	x = 5;
}
BEGIN
{
	x += 2;
	exit(0);
}
END
{
	printf("%d\n", x);
}
/* output:
7

*/
