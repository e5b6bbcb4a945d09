/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: equal parameters at every use. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_MATCHBASE] */
BEGIN
{
	@ = lquantize(1, 0, 10, 1);
	@ = lquantize(1, 1, 10, 1);
	exit(0);
}
