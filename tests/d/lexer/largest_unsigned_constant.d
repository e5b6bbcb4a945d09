/* SPDX-License-Identifier: Apache-2.0 */
/* 2^64 - 1 is the largest constant. */
BEGIN
{
	printf("%u %x\n", 18446744073709551615, 0xffffffffffffffff);
	exit(0);
}
/* output:
18446744073709551615 ffffffffffffffff

*/
