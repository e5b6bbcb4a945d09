/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: parameters are constants. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_BASETYPE] */
BEGIN
{
	x = 0;
	@ = lquantize(1, x, 10, 1);
	exit(0);
}
