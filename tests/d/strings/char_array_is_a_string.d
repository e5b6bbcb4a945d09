/* SPDX-License-Identifier: Apache-2.0 */
/* An array of char stands where a string is wanted. */
struct name { char text[8]; };
struct name n;
BEGIN
{
	n.text[0] = 'h';
	n.text[1] = 'i';
	n.text[2] = '\0';
	printf("%s %d %d\n", n.text, strlen(n.text), stringof(n.text) == "hi");
	exit(0);
}
/* output:
hi 2 1

*/
