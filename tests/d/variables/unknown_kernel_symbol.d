/* SPDX-License-Identifier: Apache-2.0 */
/* A backquoted name that the kernel does not have. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_IDENT_UNDEF] */
BEGIN
{
	trace(`no_such_symbol_anywhere);
	exit(0);
}
