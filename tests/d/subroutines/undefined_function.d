/* SPDX-License-Identifier: Apache-2.0 */
/* A function that does not exist. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_FUNC_UNDEF] */
/* stderr: undefined function name: frobnicate */
BEGIN
{
	frobnicate(3);
	exit(0);
}
