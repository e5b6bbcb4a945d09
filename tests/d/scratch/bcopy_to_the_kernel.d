/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() does not write to the kernel. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] line 11: bcopy( ) argument #2 is incompatible with prototype:
	prototype: alloca pointer
	 argument: non-alloca pointer */
BEGIN
{
	this->p = (char *)alloca(8);
	bcopy(this->p, curthread, 8);
	exit(0);
}
