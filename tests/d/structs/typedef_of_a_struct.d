/* SPDX-License-Identifier: Apache-2.0 */
/* A typedef of a struct without a tag. */
typedef struct { int x; int y; } pair_t;
pair_t p;
BEGIN
{
	p.x = 1;
	p.y = 2;
	printf("%d %d\n", p.x + p.y, sizeof (pair_t));
	exit(0);
}
/* output:
3 8

*/
