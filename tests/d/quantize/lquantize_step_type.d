/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_STEPTYPE] */
BEGIN
{
	x = 1;
	@ = lquantize(1, 0, 10, x);
	exit(0);
}
