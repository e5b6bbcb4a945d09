/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: dereferencing a NULL string faults. */
BEGIN
{
	trace(strlen(strchr("abc", 'z')));
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

*/
