/* SPDX-License-Identifier: Apache-2.0 */
/* There may be more than nine arguments. */
/* arguments: 1 2 3 4 5 6 7 8 9 10 11 */
BEGIN
{
	printf("%d %d\n", $1 + $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $10 * $11);
	exit(0);
}
/* output:
45 110

*/
