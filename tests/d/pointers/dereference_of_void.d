/* SPDX-License-Identifier: Apache-2.0 */
/* What void * points to has no type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DEREF_VOID] */
BEGIN
{
	p = (void *)16;
	trace(*p);
	exit(0);
}
