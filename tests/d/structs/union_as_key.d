/* SPDX-License-Identifier: Apache-2.0 */
/* Unions are keys by all of their bytes, whichever member wrote them. */
union either { int i; char c[4]; short s; };
union either u;
BEGIN
{
	u.i = 1;
	@[u, "a"] = count();
	@sums[u] = sum(3);
	self->x[u] = 4;
	u.i = 2;
	@[u, "a"] = count();
	self->x[u] = 5;
	u.c[0] = 1;
	@[u, "a"] = count();
	@sums[u] = sum(3);
	printf("%d ", self->x[u]);
	u.s = 2;
	printf("%d ", self->x[u]);
	u.c[3] = 1;
	printf("%d\n", self->x[u]);
	exit(0);
}
/* output:
4 5 0


             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 02 00 00 00                                      ....
  a                                                                 1

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 01 00 00 00                                      ....
  a                                                                 2

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 01 00 00 00                                      ....
                6
*/
