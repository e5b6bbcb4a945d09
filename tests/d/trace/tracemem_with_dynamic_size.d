/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24: a third argument is how many of the bytes are shown. */
BEGIN
{
	p = (char *)alloca(32);
	p[0] = 1;
	p[1] = 'a';
	n = 3;
	tracemem(p, 32, n);
	exit(0);
}
/* output:

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 01 61 00                                         .a.

*/
