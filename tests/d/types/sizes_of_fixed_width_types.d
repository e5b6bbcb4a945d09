/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed-width types and their sizes. */
BEGIN
{
	printf("%d%d%d%d %d%d%d%d\n", sizeof (int8_t), sizeof (int16_t), sizeof (int32_t),
	    sizeof (int64_t), sizeof (uint8_t), sizeof (uint16_t), sizeof (uint32_t),
	    sizeof (uint64_t));
	printf("%d %d\n", sizeof (intptr_t), sizeof (uintptr_t));
	exit(0);
}
/* output:
1248 1248
8 8

*/
