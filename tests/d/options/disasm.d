/* SPDX-License-Identifier: Apache-2.0 */
/* The programs' instructions, as -S shows them. */
/* flags: -e -x disasm */
/* stderr: dt_clause_0: */
BEGIN
{
	exit(0);
}
