/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: a macro variable that does not exist. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_MACRO_UNDEF] */
BEGIN
{
	trace($nosuchmacro);
	exit(0);
}
