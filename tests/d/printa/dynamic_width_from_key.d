/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 32: the width of %*d is the next key. */
BEGIN
{
	@a[6, 42] = count();
	printa("[%*d] %@d\n", @a);
	exit(0);
}
/* output:
[    42] 1

*/
