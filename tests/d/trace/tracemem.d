/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 24: bytes from an address. */
BEGIN
{
	p = (char *)alloca(20);
	p[0] = 'D';
	p[16] = '!';
	tracemem(p, 20);
	exit(0);
}
/* output:

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 44 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  D...............
        10: 21 00 00 00                                      !...

*/
