/* SPDX-License-Identifier: Apache-2.0 */
/* An array of arrays in a struct. */
struct s { char m[3][4]; };
struct s v;
BEGIN
{
	v.m[1][2] = 'x';
	v.m[2][3] = 'y';
	printf("%c%c %d\n", v.m[1][2], v.m[2][3], sizeof (v.m[0]));
	exit(0);
}
/* output:
xy 4

*/
