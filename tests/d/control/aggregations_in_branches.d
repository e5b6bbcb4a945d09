/* SPDX-License-Identifier: Apache-2.0 */
/* Branches may aggregate. */
BEGIN
{
	x = 5;
	if (x > 3) {
		@["large"] = count();
	} else {
		@["small"] = count();
	}
	exit(0);
}
END
{
	printa("%s %@d\n", @);
}
/* output:
large 1

*/
