/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: the factor is at least 2. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LLQUANT_FACTORVAL] */
BEGIN
{
	@ = llquantize(1, 1, 0, 6, 10);
	exit(0);
}
