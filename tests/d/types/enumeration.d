/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerators count from 0 or from what they are set to. */
enum colour { RED, GREEN = 5, BLUE };
BEGIN
{
	printf("%d %d %d %d\n", RED, GREEN, BLUE, sizeof (enum colour));
	exit(0);
}
/* output:
0 5 6 4

*/
