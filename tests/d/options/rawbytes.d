/* SPDX-License-Identifier: Apache-2.0 */
/* Option rawbytes: characters are bytes. */
/* flags: -q -x rawbytes */
char a[4];
BEGIN
{
	a[0] = 'x';
	trace(a);
	exit(0);
}
/* output:

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 78 00 00 00                                      x...

*/
