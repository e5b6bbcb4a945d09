/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the base has 32 bits. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_BASEVAL] */
BEGIN
{
	@ = lquantize(1, 0x100000000, 0x100000010, 1);
	exit(0);
}
