/* SPDX-License-Identifier: Apache-2.0 */
/* A text that does not end where it may be read. */
/* stderr: invalid address */
BEGIN
{
	p = (char *)alloca(3);
	bcopy("abc", p, 3);
	n = strlen(stringof(p));
	printf("wrong\n");
}
ERROR
{
	printf("fault %d\n", arg4);
}
BEGIN
{
	exit(0);
}
/* output:
fault 1

*/
