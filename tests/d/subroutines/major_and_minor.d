/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a kernel device number: 12 and 20 bits. */
BEGIN
{
	printf("%d %d\n", getmajor((8 << 20) | 17), getminor((8 << 20) | 17));
	exit(0);
}
/* output:
8 17

*/
