/* SPDX-License-Identifier: Apache-2.0 */
/* ++ and += of members. */
struct s { char c; int n; };
struct s v;
BEGIN
{
	v.c = 126;
	v.c++;
	v.c++;
	v.n += 5;
	v.n--;
	printf("%d %d\n", v.c, v.n);
	exit(0);
}
/* output:
-128 4

*/
