/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Solaris for unsigned types. */
uchar_t a;
ushort_t b;
uint_t c;
ulong_t d;
longlong_t e;
u_longlong_t f;
BEGIN
{
	printf("%d %d %d %d %d %d\n", sizeof (a), sizeof (b), sizeof (c), sizeof (d),
	    sizeof (e), sizeof (f));
	a = b = -1;
	printf("%d %d\n", a, b);
	exit(0);
}
/* output:
1 2 4 8 8 8
255 65535

*/
