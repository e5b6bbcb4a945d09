/* SPDX-License-Identifier: Apache-2.0 */
/* A word where a number is wanted. */
/* flags: -xerrtags -e */
/* arguments: word */
/* status: 1 */
/* stderr: [D_ */
BEGIN
{
	trace($1 + 1);
	exit(0);
}
