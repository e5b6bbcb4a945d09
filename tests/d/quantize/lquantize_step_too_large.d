/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: a step has 16 bits. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LQUANT_STEPVAL] */
BEGIN
{
	@ = lquantize(1, 0, 1000000, 100000);
	exit(0);
}
