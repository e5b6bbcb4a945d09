/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %c and %p of keys. */
BEGIN
{
	@a['q', (void *)0xff] = count();
	printa("%c %p %@d\n", @a);
	exit(0);
}
/* output:
q ff 1

*/
