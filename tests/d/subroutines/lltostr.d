/* SPDX-License-Identifier: Apache-2.0 */
/* A number as text. */
BEGIN
{
	printf("%s %s %s\n", lltostr(0), lltostr(-123), lltostr(9223372036854775807));
	exit(0);
}
/* output:
0 -123 9223372036854775807

*/
