/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 35: five keys of four sizes. */
BEGIN
{
	@[(char)1, (short)2, 3, 4ll, "five"] = sum(6);
	exit(0);
}
/* output:

   1     2        3                4  five                                                              6
*/
