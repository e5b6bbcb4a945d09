/* SPDX-License-Identifier: Apache-2.0 */
/* -> of a pointer to a struct that is defined nowhere. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPLETE] */
struct defined_nowhere_at_all;
BEGIN
{
	p = (struct defined_nowhere_at_all *)16;
	trace(p->x);
	exit(0);
}
