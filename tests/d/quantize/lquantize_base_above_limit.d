/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the base lies below the limit. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_MISMATCH] */
BEGIN
{
	@ = lquantize(1, 10, 0, 1);
	exit(0);
}
