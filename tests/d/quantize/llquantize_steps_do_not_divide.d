/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: steps must divide the factor, or be a multiple of it. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LLQUANT_STEPVAL] */
BEGIN
{
	@ = llquantize(1, 10, 0, 6, 7);
	exit(0);
}
