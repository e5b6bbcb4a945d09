/* SPDX-License-Identifier: Apache-2.0 */
/* A number is no pointer. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DEREF_NONPTR] */
BEGIN
{
	x = 16;
	trace(*x);
	exit(0);
}
