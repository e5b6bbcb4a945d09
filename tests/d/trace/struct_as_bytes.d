/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24: a struct is printed as a table of bytes. */
struct s { int a; char b[4]; };
struct s v;
BEGIN
{
	v.a = 0x04030201;
	v.b[0] = 'A';
	v.b[1] = 'z';
	trace(v);
	exit(0);
}
/* output:

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 01 02 03 04 41 7a 00 00                          ....Az..

*/
