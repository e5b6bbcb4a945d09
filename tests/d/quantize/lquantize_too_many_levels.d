/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: at most 65535 levels. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_STEPSMALL] */
BEGIN
{
	@ = lquantize(1, 0, 100000, 1);
	exit(0);
}
