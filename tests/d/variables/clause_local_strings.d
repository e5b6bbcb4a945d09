/* SPDX-License-Identifier: Apache-2.0 */
/* this-> variables can be strings. */
this string s;
BEGIN
{
	this->s = "abc";
	this->t = strjoin(this->s, "def");
	printf("%s %s\n", this->s, this->t);
	exit(0);
}
/* output:
abc abcdef

*/
