/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_MATCHSTEP] */
BEGIN
{
	@ = lquantize(1, 0, 10, 1);
	@ = lquantize(1, 0, 10, 2);
	exit(0);
}
