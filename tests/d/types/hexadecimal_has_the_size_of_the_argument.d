/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 14: -1 of each size in hexadecimal. */
BEGIN
{
	x = -1;
	printf("%x %x %x %x\n", (int8_t)x, (int16_t)x, x, (int64_t)x);
	exit(0);
}
/* output:
ff ffff ffffffff ffffffffffffffff

*/
