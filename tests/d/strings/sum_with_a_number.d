/* SPDX-License-Identifier: Apache-2.0 */
/* s + n is what is n characters further on. */
BEGIN
{
	s = "abcdef";
	printf("%s %s %s\n", s + 2, 3 + s, "xyz" + 1);
	trace(s + 4);
	t = s + 1;
	printf(" %s %d %d\n", t, strlen(s + 5), s + 1 == "bcdef");
	exit(0);
}
/* output:
cdef def yz
ef bcdef 1 1

*/
