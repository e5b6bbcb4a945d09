/* SPDX-License-Identifier: Apache-2.0 */
/* Macros are not replaced in strings. */
/* arguments: 7 */
BEGIN
{
	printf("$1 %d $pid\n", $1);
	exit(0);
}
/* output:
$1 7 $pid

*/
