/* SPDX-License-Identifier: Apache-2.0 */
/* Text as a number. */
BEGIN
{
	printf("%d %d %d\n", strtoll("0"), strtoll("-475"), strtoll("9223372036854775807"));
	exit(0);
}
/* output:
0 -475 9223372036854775807

*/
