/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_MATCHLIM] */
BEGIN
{
	@ = lquantize(1, 0, 10, 1);
	@ = lquantize(1, 0, 20, 1);
	exit(0);
}
