/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %p is hexadecimal without 0x. */
BEGIN
{
	printf("%p %p\n", (void *)0xffff1234, (int *)16);
	exit(0);
}
/* output:
ffff1234 10

*/
