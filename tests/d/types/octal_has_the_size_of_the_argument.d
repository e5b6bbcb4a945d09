/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 14 and 27: -1 of two sizes in octal. */
BEGIN
{
	x = -1;
	printf("%o %o\n", (int8_t)x, x);
	exit(0);
}
/* output:
377 37777777777

*/
