/* SPDX-License-Identifier: Apache-2.0 */
/* Actions on aggregations in branches. */
BEGIN
{
	@a = sum(3);
	if (1) {
		printa("yes %@d\n", @a);
	} else {
		printa("no %@d\n", @a);
	}
	exit(0);
}
/* output:
yes 3

*/
