/* SPDX-License-Identifier: Apache-2.0 */
/* Integer constants of all three bases. */
BEGIN
{
	printf("%d %d %d %d\n", 255, 0377, 0xff, 0XfF);
	exit(0);
}
/* output:
255 255 255 255

*/
