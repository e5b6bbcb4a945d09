/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_LIMTYPE] */
BEGIN
{
	x = 10;
	@ = lquantize(1, 0, x, 1);
	exit(0);
}
