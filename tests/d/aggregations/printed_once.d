/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: what printa printed is not printed at the end. */
BEGIN
{
	@a = sum(1);
	@b = sum(2);
	exit(0);
}
END
{
	printa("a: %@d\n", @a);
}
/* output:
a: 1

                2
*/
