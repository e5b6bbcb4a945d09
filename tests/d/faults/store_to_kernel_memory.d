/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel memory is never written. */
BEGIN
{
	p = (int *)curthread;
	*p = 0;
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault %d\n", arg4 == 1 || arg4 == 6);
}
/* output:
fault 1

*/
