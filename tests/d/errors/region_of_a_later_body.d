/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of a clause that has a predicate with a brace in a string. */
/* flags: -e -n 'BEGIN /execname != "{"/ { exit(0) } END { exit(; }' */
/* status: 1 */
/* stderr: { exit(; }: in action list: syntax error near ";" */
BEGIN
{
	exit(0);
}
