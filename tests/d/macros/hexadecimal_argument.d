/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: an argument may be a number of any base. */
/* arguments: 0x20 010 */
BEGIN
{
	printf("%d %d\n", $1, $2);
	exit(0);
}
/* output:
32 8

*/
