/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: >> keeps the sign of a signed value and fills an unsigned one with zeros. */
BEGIN
{
	s = -16;
	u = 0xfffffff0;
	printf("%d %x\n", s >> 2, u >> 2);
	printf("%x\n", (uint64_t)s >> 60);
	exit(0);
}
/* output:
-4 3ffffffc
f

*/
