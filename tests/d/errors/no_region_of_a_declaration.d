/* SPDX-License-Identifier: Apache-2.0 */
/* A declaration in front of a clause is in none of its parts. */
/* flags: -e -n 'enum e { A, A }; BEGIN { exit(0); }' */
/* status: 1 */
/* stderr: BEGIN { exit(0); }: identifier redeclared: A */
BEGIN
{
	exit(0);
}
