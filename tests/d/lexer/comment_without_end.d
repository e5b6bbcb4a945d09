/* SPDX-License-Identifier: Apache-2.0 */
/* A comment must end. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	exit(0);
}
/* never ends
