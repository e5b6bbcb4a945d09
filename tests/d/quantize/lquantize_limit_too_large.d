/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the limit has 32 bits. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_LIMVAL] */
BEGIN
{
	@ = lquantize(1, 0, 0x100000000, 1);
	exit(0);
}
