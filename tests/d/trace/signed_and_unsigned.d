/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 23: the sign of each size is kept. */
BEGIN
{
	trace((char)-1);
	trace(" ");
	trace((unsigned char)-1);
	trace(" ");
	trace((short)-1);
	trace(" ");
	trace((uint32_t)-1);
	trace(" ");
	trace((uint64_t)-1);
	trace("\n");
	exit(0);
}
/* output:
-1 255 -1 4294967295 18446744073709551615

*/
