/* SPDX-License-Identifier: Apache-2.0 */
/* Sums need all 64 bits. */
BEGIN
{
	@ = sum(0x7fffffff00000000);
	@ = sum(0xffffffff);
	exit(0);
}
/* output:

 9223372036854775807
*/
