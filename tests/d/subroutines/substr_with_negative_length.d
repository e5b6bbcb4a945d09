/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: a negative length leaves so many characters off the end. */
BEGIN
{
	s = "foobarbaz";
	printf("%s %s [%s]\n", substr(s, 0, -3), substr(s, 3, -1), substr(s, 6, -3));
	exit(0);
}
/* output:
foobar barba []

*/
