/* SPDX-License-Identifier: Apache-2.0 */
/* Variables have no address. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ADDROF_VAR] */
BEGIN
{
	a = 2;
	trace(&a);
	exit(0);
}
