/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: 10 to the power of 30 does not fit 64 bits. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LLQUANT_HMAGVAL] */
BEGIN
{
	@ = llquantize(1, 10, 0, 30, 10);
	exit(0);
}
