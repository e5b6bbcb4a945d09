/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 50: a name that was never assigned. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_IDENT_UNDEF] */
/* stderr: failed to resolve nothing_of_that_name: Unknown variable name */
BEGIN
/nothing_of_that_name == 3/
{
	exit(0);
}
