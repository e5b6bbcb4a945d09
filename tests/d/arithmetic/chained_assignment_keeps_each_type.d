/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an assignment has the type of what was assigned to. */
uint8_t a;
uint64_t d;
BEGIN
{
	d = a = 0x1ff;
	printf("%d %d\n", a, d);
	exit(0);
}
/* output:
255 255

*/
