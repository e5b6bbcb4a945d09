/* SPDX-License-Identifier: Apache-2.0 */
/* How many keys to keep is a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
BEGIN
{
	@a[1] = count();
	trunc(@a, "x");
	exit(0);
}
