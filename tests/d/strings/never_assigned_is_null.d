/* SPDX-License-Identifier: Apache-2.0 */
/* A string that was never assigned is NULL: reading it as text is a fault. */
/* stderr: invalid address (0x0) */
string s;
BEGIN
{
	printf("%d %d\n", s == NULL, s != NULL);
	printf("%s\n", a[1] = "x");
}
BEGIN
{
	trace(s);
}
BEGIN
{
	printf("%s\n", a[2]);
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("%d %d\n", arg4, arg5);
}
/* output:
1 0
x
1 0
1 0

*/
