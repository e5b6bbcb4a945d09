/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: faulting probe, code and value. */
BEGIN
{
	x = *(int *)0x10;
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("%d %d %x\n", arg1, arg4, arg5);
}
/* output:
1 1 10

*/
