/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a union share their bytes. */
union u { int i; char c[4]; short s; };
union u v;
BEGIN
{
	v.i = 0x41424344;
	printf("%c%c %x %d\n", v.c[0], v.c[3], v.s, sizeof (v));
	exit(0);
}
/* output:
DA 4344 4

*/
