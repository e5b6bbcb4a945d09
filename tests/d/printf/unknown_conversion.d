/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 31. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	printf("%j\n", 1);
	exit(0);
}
