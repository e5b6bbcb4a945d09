/* SPDX-License-Identifier: Apache-2.0 */
/* %s of an array of char. */
struct name { char text[4]; };
struct name n;
BEGIN
{
	n.text[0] = 'a';
	n.text[1] = 'b';
	printf("[%s] [%4s]\n", n.text, n.text);
	exit(0);
}
/* output:
[ab] [  ab]

*/
