/* SPDX-License-Identifier: Apache-2.0 */
/* A predicate needs an expression. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
//
{
	exit(0);
}
