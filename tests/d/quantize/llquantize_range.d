/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: low is not above high. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_LLQUANT_HMAGVAL] */
BEGIN
{
	@ = llquantize(1, 10, 6, 2, 10);
	exit(0);
}
