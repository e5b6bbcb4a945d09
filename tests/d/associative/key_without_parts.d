/* SPDX-License-Identifier: Apache-2.0 */
/* A key needs at least one part. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	a[] = 3;
	exit(0);
}
