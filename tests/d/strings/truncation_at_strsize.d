/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: with strsize 8, eight characters and the NUL remain. */
/* flags: -q -xstrsize=8 */
BEGIN
{
	s = "0123456789";
	printf("%s %d\n", s, strlen(s));
	exit(0);
}
/* output:
01234567 8

*/
