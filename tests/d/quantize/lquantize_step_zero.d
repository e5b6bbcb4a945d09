/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: a step is not 0. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_STEPTYPE] */
BEGIN
{
	@ = lquantize(1, 0, 10, 0);
	exit(0);
}
