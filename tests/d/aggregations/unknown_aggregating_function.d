/* SPDX-License-Identifier: Apache-2.0 */
/* A function that does not exist. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_FUNC_UNDEF] */
BEGIN
{
	@a = median(5);
	exit(0);
}
