/* SPDX-License-Identifier: Apache-2.0 */
/* A #line directive with a name says which file the lines are of. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: line_directive_names_a_file.d: [D_IDENT_UNDEF] "foo.d", line 70: failed to resolve nosuch: */
#line 68 "foo.d"
BEGIN
{
	trace(nosuch);
	exit(0);
}
