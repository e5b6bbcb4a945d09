/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of 64 bits, negative ones too. */
BEGIN
{
	a[-1ll] = 1;
	a[0x7fffffffffffffff] = 2;
	printf("%d %d %d\n", a[-1ll], a[0x7fffffffffffffff], a[0ll]);
	exit(0);
}
/* output:
1 2 0

*/
