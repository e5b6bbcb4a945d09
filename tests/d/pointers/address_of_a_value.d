/* SPDX-License-Identifier: Apache-2.0 */
/* A value has no address. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ADDROF_LVAL] */
BEGIN
{
	trace(&(1 + 2));
	exit(0);
}
