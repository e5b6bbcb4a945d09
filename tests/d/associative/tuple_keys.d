/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of several parts. */
BEGIN
{
	a["x", 1] = 1;
	a["x", 2] = 2;
	a["y", 1] = 3;
	printf("%d %d %d %d\n", a["x", 1], a["x", 2], a["y", 1], a["y", 2]);
	exit(0);
}
/* output:
1 2 3 0

*/
