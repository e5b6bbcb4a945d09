/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 14: (char)0xef is -17; printed in hexadecimal it has one byte. */
BEGIN
{
	x = 0x123456789abcdef;
	printf("%d %u %x\n", (char)x, (unsigned char)x, (char)x);
	exit(0);
}
/* output:
-17 239 ef

*/
