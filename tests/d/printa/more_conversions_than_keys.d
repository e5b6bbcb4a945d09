/* SPDX-License-Identifier: Apache-2.0 */
/* A key that is not there. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTF_ARG_PROTO] */
BEGIN
{
	@a[1] = count();
	printa("%d %d %@d\n", @a);
	exit(0);
}
