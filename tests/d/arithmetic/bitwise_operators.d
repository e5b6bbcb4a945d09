/* SPDX-License-Identifier: Apache-2.0 */
/* &, | and ^ of variables. */
BEGIN
{
	a = 0xf0f0;
	b = 0xff00;
	printf("%x %x %x\n", a & b, a | b, a ^ b);
	exit(0);
}
/* output:
f000 fff0 ff0

*/
