/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes before the NUL. */
BEGIN
{
	printf("%d %d %d\n", strlen(""), strlen("a"), strlen("hello world"));
	exit(0);
}
/* output:
0 1 11

*/
