/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 35: unsigned keys of 4 and 8 bytes. */
BEGIN
{
	@a[(uint32_t)7, (uint64_t)8] = sum(6);
	printa(@a);
	printa("%d %d %@d\n", @a);
	exit(0);
}
/* output:

        7                8                6
7 8 6

*/
