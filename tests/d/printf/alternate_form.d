/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 30: # puts 0x or 0 in front. */
BEGIN
{
	printf("%#x %#X %#o %x\n", 255, 255, 8, 255);
	exit(0);
}
/* output:
0xff 0XFF 010 ff

*/
