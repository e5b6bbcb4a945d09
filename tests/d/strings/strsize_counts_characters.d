/* SPDX-License-Identifier: Apache-2.0 */
/* strsize is a number of characters; the end comes on top. */
/* flags: -q -xstrsize=5 */
BEGIN
{
	s = "123456789";
	printf("%s %d %d\n", s, strlen(s), strlen("123456789"));
	printf("%s %s %s\n", lltostr(1234567), strjoin("abc", "defg"), substr("abcdefghij", 2));
	printf("%s %s\n", strtok("abcdefgh", "x"), strchr("abcdefgh", 'b'));
	self->s = "abcdefgh";
	x[1] = "abcdefgh";
	this->s = "abcdefgh";
	printf("%s %s %s %s\n", self->s, x[1], this->s, strstr("abcdefgh", "bc"));
	exit(0);
}
/* output:
12345 5 5
12345 abcde cde
abcde bcde
abcde abcde abcde bcde

*/
