/* SPDX-License-Identifier: Apache-2.0 */
/* A bit-field has no address. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ADDROF_BITFIELD] */
struct s { int a : 3; };
BEGIN
{
	this->p = (struct s *)alloca(8);
	trace(&this->p->a);
	exit(0);
}
