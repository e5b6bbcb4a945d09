/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: with strsize 10, ten characters remain. */
/* flags: -q -xstrsize=10 */
BEGIN
{
	s = "0123456789abcdef";
	printf("%s %d\n", s, strlen(s));
	this->t = strjoin(s, s);
	printf("%s %d\n", this->t, strlen(this->t));
	exit(0);
}
/* output:
0123456789 10
0123456789 10

*/
