/* SPDX-License-Identifier: Apache-2.0 */
/* A precision is the least number of digits. */
BEGIN
{
	printf("[%.4d] [%8.3d] [%-8.3d]\n", 42, 7, -7);
	exit(0);
}
/* output:
[0042] [     007] [-007    ]

*/
