/* SPDX-License-Identifier: Apache-2.0 */
/* The option may be in the program. */
#pragma D option strsize=16
BEGIN
{
	s = "0123456789abcdefghij";
	printf("%s %d\n", s, sizeof (s));
	exit(0);
}
/* output:
0123456789abcdef 16

*/
