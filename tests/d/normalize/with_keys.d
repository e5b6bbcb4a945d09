/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: by the time that passed, as rates are made. */
BEGIN
{
	@a["r"] = sum(1000);
	@a["w"] = sum(3500);
	normalize(@a, 1000);
	printa("%s %@d\n", @a);
	exit(0);
}
/* output:
r 1
w 3

*/
