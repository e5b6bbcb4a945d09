/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: the option in the program, before its use. */
/* arguments: 3 */
#pragma D option defaultargs
BEGIN
{
	printf("%d %d\n", $1, $2);
	exit(0);
}
/* output:
3 0

*/
