/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() to where one byte is too few. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(4);
	bcopy("abc", p, 4);
	s = stringof(p);
	bcopy("abcd", p, 5);
	printf("wrong\n");
}
ERROR
{
	printf("fault %d\n", arg4);
}
BEGIN
{
	printf("%s\n", s);
	exit(0);
}
/* output:
fault 1
abc

*/
