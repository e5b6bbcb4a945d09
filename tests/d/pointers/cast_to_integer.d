/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer as a number and back. */
BEGIN
{
	p = (int *)0xffff888000000010;
	x = (uint64_t)p;
	printf("%x %d\n", x, (int *)x == p);
	exit(0);
}
/* output:
ffff888000000010 1

*/
