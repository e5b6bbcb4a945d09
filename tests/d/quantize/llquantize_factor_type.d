/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: parameters are constants. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LLQUANT_FACTORTYPE] */
BEGIN
{
	x = 10;
	@ = llquantize(1, x, 0, 6, 10);
	exit(0);
}
