/* SPDX-License-Identifier: Apache-2.0 */
/* What says off is off. */
/* flags: -q -xerrtags -x argref=no */
/* arguments: unused */
/* status: 1 */
/* stderr: [D_MACRO_UNUSED] */
BEGIN
{
	exit(0);
}
